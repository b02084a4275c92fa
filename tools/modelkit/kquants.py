"""Encoders for GGUF's block formats. The gguf package decodes all of them but encodes only the simple ones. The larger K formats
are encoded here from the smallest and largest value of each sub-block, which is accurate enough for tests; Q2_K, Q3_K and the
IQ formats by llama.cpp."""

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import quants

from . import ggml
from .values import Encoder

BLOCK = 256  # elements in one K block


def _halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Converts [n, 1] float32 to stored bytes [n, 2], and returns these and the values that a reader decodes."""
    half = values.astype(np.float16)
    return half.view(np.uint8), half.astype(np.float32)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.zeros_like(above), where=below != 0)


def _scale_and_min(x: np.ndarray, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """x: [n, 8, 32]. Returns the 16 bytes d, dmin, 6-bit scales and mins, and the levels [n, 8, 32] as uint8."""
    low = np.minimum(x.min(-1), 0)
    step = (x.max(-1).clip(0) - low) / levels
    d_bytes, d = _halves(step.max(-1, keepdims=True) / 63)
    m_bytes, m = _halves((-low).max(-1, keepdims=True) / 63)
    scale = np.rint(_ratio(step, np.broadcast_to(d, step.shape))).clip(0, 63).astype(np.uint8)
    least = np.rint(_ratio(-low, np.broadcast_to(m, low.shape))).clip(0, 63).astype(np.uint8)
    width = (d * scale)[..., None]
    q = np.rint(_ratio(x + (m * least)[..., None], np.broadcast_to(width, x.shape)))
    packed = np.concatenate([
        scale[:, :4] | (scale[:, 4:] >> 4 << 6),
        least[:, :4] | (least[:, 4:] >> 4 << 6),
        (scale[:, 4:] & 15) | (least[:, 4:] << 4),
    ], axis=1)
    return np.concatenate([d_bytes, m_bytes, packed], axis=1), q.clip(0, levels).astype(np.uint8)


def _nibbles(q: np.ndarray) -> np.ndarray:
    """Packs [n, 8, 32] levels into [n, 128]: two sub-blocks share 32 bytes."""
    pairs = (q & 15).reshape(len(q), 4, 2, 32)
    return (pairs[:, :, 0] | pairs[:, :, 1] << 4).reshape(len(q), 128)


def q4_k(values: np.ndarray) -> np.ndarray:
    head, q = _scale_and_min(values.reshape(-1, 8, 32), 15)
    return np.concatenate([head, _nibbles(q)], axis=1)


def q5_k(values: np.ndarray) -> np.ndarray:
    head, q = _scale_and_min(values.reshape(-1, 8, 32), 31)
    # Bit i of byte j is the fifth bit of element j of sub-block i.
    fifth = np.packbits(q >> 4, axis=1, bitorder="little").reshape(len(q), 32)
    return np.concatenate([head, fifth, _nibbles(q)], axis=1)


def q6_k(values: np.ndarray) -> np.ndarray:
    x = values.reshape(-1, 16, 16)
    step = np.abs(x).max(-1) / 31
    d_bytes, d = _halves(step.max(-1, keepdims=True) / 127)
    scale = np.rint(_ratio(step, np.broadcast_to(d, step.shape))).clip(-128, 127)
    width = np.broadcast_to((d * scale)[..., None], x.shape)
    q = (np.rint(_ratio(x, width)).clip(-32, 31) + 32).astype(np.uint8).reshape(-1, 2, 4, 32)
    low = np.stack([(q[:, :, 0] & 15) | (q[:, :, 2] << 4), (q[:, :, 1] & 15) | (q[:, :, 3] << 4)], axis=2)
    high = q[:, :, 0] >> 4 | q[:, :, 1] >> 4 << 2 | q[:, :, 2] >> 4 << 4 | q[:, :, 3] >> 4 << 6
    n = len(x)
    return np.concatenate(
        [low.reshape(n, 128), high.reshape(n, 64), scale.astype(np.int8).view(np.uint8), d_bytes], axis=1)


_OWN = {T.Q4_K: q4_k, T.Q5_K: q5_k, T.Q6_K: q6_k}
_BY_LLAMA_CPP = (T.Q2_K, T.Q3_K, T.IQ4_NL, T.IQ4_XS, T.IQ3_S, T.IQ3_XXS, T.IQ2_S, T.IQ2_XS, T.IQ2_XXS)


def encode(values: np.ndarray, kind: T) -> np.ndarray:
    """Encodes float32 [rows, columns] as bytes [rows, ...]."""
    if kind in _OWN:
        return _OWN[kind](values).reshape(len(values), -1)
    if kind in _BY_LLAMA_CPP:
        return ggml.quantize(values, kind)
    return quants.quantize(np.ascontiguousarray(values), kind).view(np.uint8).reshape(len(values), -1)


def encoder(kind: T) -> Encoder:
    block = quants.GGML_QUANT_SIZES[kind][0]
    return Encoder(kind.name, block, lambda x: (encode(x, kind),))
