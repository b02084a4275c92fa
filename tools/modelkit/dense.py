"""Dense number formats: converts float32 to the bytes of a checkpoint."""

import numpy as np

from .values import Encoder

SAFETENSORS_NAMES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


def to_bfloat16(values: np.ndarray) -> np.ndarray:
    """Rounds to nearest even and returns uint16. Finite input only."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def encoder(dtype: str) -> Encoder:
    cast = {
        "float32": lambda x: x.astype(np.float32, copy=False),
        "float16": lambda x: x.astype(np.float16),
        "bfloat16": to_bfloat16,
    }[dtype]
    return Encoder(dtype, 1, lambda x: (cast(x),))
