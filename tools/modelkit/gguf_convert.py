"""Writes the GGUF form of a checkpoint folder, as llama.cpp's converter would, in float32."""

import json
import re
from pathlib import Path

import gguf
import numpy as np

from . import gguf_names, gguf_out, oracle
from .gguf_archs import BLOCK, Arch, Weights, common_keys, dense, hybrid, latent, mamba, mixed
from .recipe import Recipe

ARCHS: dict[str, Arch] = dense.ARCHS | hybrid.ARCHS | latent.ARCHS | mamba.ARCHS | mixed.ARCHS
_LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)")


def _name(arch: Arch, name: str) -> str:
    layer = _LAYER.fullmatch(name)
    if layer and layer[2] in arch.tensors:
        return f"blk.{layer[1]}.{arch.tensors[layer[2]]}"
    module, _, leaf = name.rpartition(".")
    if layer:
        return f"blk.{layer[1]}.{(BLOCK | arch.names)[layer[2].rpartition('.')[0]]}.{leaf}"
    return f"{(gguf_names.TOP | arch.top)[module]}.{leaf}"


def _values(arch: Arch, name: str, value: np.ndarray, config: dict) -> np.ndarray:
    if arch.adds_one and name.endswith("norm.weight") and not name.endswith(".linear_attn.norm.weight"):
        value = value + 1
    heads = gguf_names.rotary_heads(name, config["num_attention_heads"], config["num_key_value_heads"])
    if arch.permutes and heads:
        value = gguf_names.permute(value, heads)
    return value


def tensors(arch: Arch, config: dict, weights: Weights) -> Weights:
    """Returns the tensors of the GGUF file by name."""
    changed = arch.change(weights, config)
    return arch.extra(config) | {_name(arch, name): _values(arch, name, value, config) for name, value in changed.items()}


def put(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    """Adds a value with the type that the converter gives it."""
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)


def encoded_matrices(found: Weights, kind: gguf.GGMLQuantizationType) -> Weights:
    """Returns the matrices whose rows are whole blocks, encoded. Norms may have a row per group, but are never encoded."""
    block = gguf.GGML_QUANT_SIZES[kind][0]
    return {name: gguf.quants.quantize(np.ascontiguousarray(value), kind) for name, value in found.items()
            if value.ndim > 1 and value.shape[-1] % block == 0 and name.endswith(".weight") and not name.endswith("_norm.weight")}


def quantized(found: Weights, kind: gguf.GGMLQuantizationType) -> tuple[Weights, Weights]:
    """Returns the encoded matrices, and all tensors with the values that a reader decodes."""
    encoded = encoded_matrices(found, kind)
    decoded = {name: gguf.quants.dequantize(value, kind).astype(np.float32).reshape(found[name].shape)
               for name, value in encoded.items()}
    return encoded, found | decoded


def write(path: Path, label: str, keys: dict, found: Weights, encoded: Weights | None = None,
          kind: gguf.GGMLQuantizationType | None = None, vocabulary: bool = False) -> Path:
    """`keys` are whole keys; `encoded` tensors, of type `kind`, replace those in `found`."""
    writer = gguf.GGUFWriter(path, label)
    for key, value in keys.items():
        put(writer, key, value)
    if vocabulary:
        gguf_out.describe_tokenizer(writer, Recipe(family="qwen3"), len(found["token_embd.weight"]))
    else:
        writer.add_tokenizer_model("none")
    for name, value in found.items():
        if encoded and name in encoded:
            writer.add_tensor(name, encoded[name], raw_dtype=kind)
        else:
            writer.add_tensor(name, np.ascontiguousarray(value, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def read(folder: Path, name: str) -> tuple[dict, Weights]:
    """Returns the keys and tensors of the GGUF form of a checkpoint folder: of its text model, if it has another one, too."""
    arch = ARCHS[name]
    whole = json.loads((folder / "config.json").read_text())
    config = whole.get("text_config", whole)
    weights = {_text_name(each): np.array(value) for each, value in oracle.folder_weights(folder).items()
               if not each.startswith("model.visual.")}
    keys = {f"{name}.{key}": value for key, value in (common_keys(config) | arch.keys(config)).items()}
    return keys, tensors(arch, config, weights)


def _text_name(name: str) -> str:
    return name.replace("model.language_model.", "model.", 1)
