"""Writes the header of a real model's GGUF file: all keys, tensor names and shapes, a small vocabulary, and no weights."""

from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

from . import gguf_out
from .gguf_archs import common_keys
from .gguf_convert import ARCHS, put, tensors
from .recipe import Recipe
from .tensor import Tensor


EXPERTS = {"gpt-oss": T.MXFP4}  # of files that people have; Q8_0 for other architectures


def parameters(config: dict, shapes: list[Tensor]) -> int:
    """The parameters of a checkpoint in Hugging Face's form, without multi-token prediction."""
    later = f"model.layers.{config['num_hidden_layers']}."
    return sum(tensor.elements for tensor in shapes if not tensor.name.startswith(("mtp.", later)))


def _kind(arch: str, name: str, shape: tuple[int, ...]) -> T:
    if len(shape) == 1 or shape[-1] % 32 or name.endswith((".bias", "_norm.weight")):
        return T.F32
    return EXPERTS.get(arch, T.Q8_0) if name.endswith("_exps.weight") else T.Q8_0


def write(path: Path, name: str, config: dict, shapes: list[Tensor]) -> Path:
    """The file has its full size, but is sparse: only tensors that are part of the config have values."""
    arch = ARCHS[name]
    broadcast = {tensor.name: np.broadcast_to(np.float32(0), tensor.shape) for tensor in shapes}
    found, valued = tensors(arch, config, broadcast), arch.extra(config)
    writer = gguf.GGUFWriter(path, name)
    for key, value in (common_keys(config) | arch.keys(config)).items():
        put(writer, f"{name}.{key}", value)
    gguf_out.describe_tokenizer(writer, Recipe(family="qwen3"))
    offsets, total = {}, 0
    for each, value in found.items():
        kind = _kind(name, each, value.shape)
        block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        nbytes = value.size // block * block_bytes
        writer.add_tensor_info(each, value.shape, np.dtype(np.float32), nbytes, raw_dtype=kind)
        offsets[each] = total
        total += gguf.GGUFWriter.ggml_pad(nbytes, writer.data_alignment)
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    file = writer.fout[0]
    writer.write_padding(file, file.tell())
    start = file.tell()
    for each, value in valued.items():
        file.seek(start + offsets[each])
        file.write(np.ascontiguousarray(value, np.float32).tobytes())
    file.truncate(start + total)
    writer.close()
    return path
