#!/usr/bin/env python3
"""Prints the table of src/kernels/weights/gguf_blocks_test.cpp: for each GGUF type, a hash of the floats that the `gguf` package
decodes from 64 pseudo-random blocks, and the first three floats.

Script and test generate the same blocks: bytes from a linear congruential generator, with the fp16 fields masked so that
they are finite, and E8M0 fields so that they are not denormal."""
import re

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize

BLOCKS = 64
HALF_FIELDS = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
               T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.Q2_K: [80, 82], T.Q3_K: [108], T.MXFP4: [], T.IQ4_NL: [0],
               T.IQ4_XS: [0], T.IQ3_S: [0], T.IQ3_XXS: [0], T.IQ2_S: [0], T.IQ2_XS: [0], T.IQ2_XXS: [0]}
EXPONENT_FIELDS = {T.MXFP4: [0]}


def random_bytes(count):
    state, out = 1, bytearray()
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(state >> 24)
    return out


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


for kind, fields in HALF_FIELDS.items():
    size = GGML_QUANT_SIZES[kind][1]
    data = random_bytes(BLOCKS * size)
    for block in range(BLOCKS):
        for field in fields:
            data[block * size + field + 1] &= 0xBF
        for field in EXPONENT_FIELDS.get(kind, []):
            data[block * size + field] |= 0x40
    floats = dequantize(np.frombuffer(bytes(data), dtype=np.uint8), kind)
    first = ", ".join(re.sub(r"\.?0+p", "p", float(x).hex()) + "f" for x in floats[:3])
    print(f'{{"{kind.name}", 0x{fnv1a(floats.tobytes()):016x}, {{{first}}}}},')
