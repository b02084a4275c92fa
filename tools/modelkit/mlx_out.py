"""Writes MLX-quantised checkpoints in mlx-lm's format."""

from collections.abc import Iterator

import mlx.core as mx
import numpy as np

from . import dense
from .recipe import Recipe
from .safetensors_out import Entry
from .tensor import Tensor
from .values import Encoder, ValueSource, tensors

_MLX_DTYPES = {"float32": mx.float32, "float16": mx.float16, "bfloat16": mx.bfloat16}


def _numpy(array: mx.array) -> np.ndarray:
    return np.array(array.view(mx.uint16) if array.dtype == mx.bfloat16 else array)


def _encoder(params: dict, dtype: str) -> Encoder:
    def encode(values: np.ndarray) -> tuple[np.ndarray, ...]:
        with mx.stream(mx.cpu):
            parts = mx.quantize(mx.array(values).astype(_MLX_DTYPES[dtype]), **params)
            return tuple(_numpy(part) for part in parts)

    return Encoder(f"{params}{dtype}", params["group_size"], encode)


def quantization(recipe: Recipe) -> dict:
    """Returns the quantization section of config.json. `mixed` gives some modules other settings, as mlx-lm's predicates do."""
    plain = {"group_size": recipe.group_size, "bits": recipe.bits}
    section: dict = dict(plain)
    if recipe.mode != "affine":
        section["mode"] = recipe.mode
    if recipe.mixed:
        eight = {"group_size": 64, "bits": 8}
        section["model.embed_tokens"] = eight
        section["lm_head"] = False
        for tensor in tensors(recipe):
            if tensor.module.endswith(("0.self_attn.v_proj", "0.mlp.down_proj")):
                section[tensor.module] = eight
            elif tensor.module.endswith(("1.self_attn.o_proj", "1.mlp.gate_proj", "1.self_attn.q_proj")):
                section[tensor.module] = False
        if recipe.is_tied:
            del section["lm_head"]
    return section


def module_params(section: dict, tensor: Tensor) -> dict | None:
    """Returns the arguments of mx.quantize for one tensor, or None if it stays dense."""
    if not tensor.is_matrix:
        return None
    chosen = section.get(tensor.module, section)
    if chosen is False:
        return None
    return {"group_size": chosen["group_size"], "bits": chosen["bits"], "mode": chosen.get("mode", "affine")}


def mxfp4_blocks(tensor: Tensor, source: ValueSource) -> Iterator[Entry]:
    """The format of the published gpt-oss: 16 bytes per group of 32 numbers, and a scale of one byte."""
    encoder = _encoder({"group_size": 32, "bits": 4, "mode": "mxfp4"}, "float32")
    *rows, columns = tensor.shape
    yield Entry(tensor.name, "U8", (*rows, columns // 32, 16), source.pieces(tensor, encoder, 0))
    yield Entry(tensor.name.removesuffix("_blocks") + "_scales", "U8", (*rows, columns // 32), source.pieces(tensor, encoder, 1))


def entries(recipe: Recipe, source: ValueSource) -> Iterator[Entry]:
    section, number = quantization(recipe), dense.SAFETENSORS_NAMES[recipe.dtype]
    for tensor in tensors(recipe):
        params = module_params(section, tensor)
        if params is None:
            yield Entry(tensor.name, number, tensor.shape, source.pieces(tensor, dense.encoder(recipe.dtype)))
            continue
        *rows, columns = tensor.shape
        groups = columns // params["group_size"]
        if columns % params["group_size"]:
            raise ValueError(f"{tensor.name}: rows of {columns} values cannot be divided into groups of {params['group_size']}")
        encoder = _encoder(params, recipe.dtype)
        yield Entry(tensor.name, "U32", (*rows, columns * params["bits"] // 32), source.pieces(tensor, encoder, 0))
        affine = params["mode"] == "affine"
        yield Entry(f"{tensor.module}.scales", number if affine else "U8", (*rows, groups),
                    source.pieces(tensor, encoder, 1))
        if affine:
            yield Entry(f"{tensor.module}.biases", number, (*rows, groups), source.pieces(tensor, encoder, 2))
