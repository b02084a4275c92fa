"""llama.cpp's own encoders and decoders of GGUF's block formats: C functions that the xllamacpp wheel exports."""

import ctypes
import functools
import importlib.util
import os
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as T


@functools.cache
def _library() -> ctypes.CDLL:
    spec = importlib.util.find_spec("xllamacpp")
    assert spec and spec.submodule_search_locations, "xllamacpp is not installed; run tools/bootstrap.sh --dev"
    path = next(Path(spec.submodule_search_locations[0]).glob("*.so"))
    library = ctypes.CDLL(str(path), mode=os.RTLD_LAZY)
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                            ctypes.c_int64, ctypes.c_void_p]
    return library


def quantize(values: np.ndarray, kind: T) -> np.ndarray:
    """Encodes float32 [rows, columns] as bytes [rows, ...]. All columns have the same importance."""
    values = np.ascontiguousarray(values, np.float32)
    rows, columns = values.shape
    block, block_bytes = GGML_QUANT_SIZES[kind]
    out = np.empty((rows, columns // block * block_bytes), np.uint8)
    importance = np.ones(columns, np.float32)
    written = _library().ggml_quantize_chunk(kind.value, values.ctypes.data, out.ctypes.data, 0, rows, columns,
                                             importance.ctypes.data)
    assert written == out.nbytes
    return out


def dequantize(blocks: np.ndarray, kind: T) -> np.ndarray:
    """Decodes bytes [rows, ...] to float32 [rows, columns]."""
    blocks = np.ascontiguousarray(blocks)
    block, block_bytes = GGML_QUANT_SIZES[kind]
    out = np.empty((len(blocks), blocks.shape[1] // block_bytes * block), np.float32)
    decode = getattr(_library(), "dequantize_row_" + kind.name.lower().replace("_k", "_K"))
    decode.restype = None
    decode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    decode(blocks.ctypes.data, out.ctypes.data, out.size)
    return out
