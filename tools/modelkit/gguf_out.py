"""Writes GGUF files like llama.cpp's converter and quantiser."""

import json
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

from . import gguf_names, kquants, tokenizer
from .progress import Progress
from .recipe import BOS_ID, EOS_ID, Recipe, hf_config
from .tensor import Tensor
from .values import ValueSource, tensors

_FILE_TYPES = {"f32": "ALL_F32", "q4_k": "MOSTLY_Q4_K_S", "q5_k": "MOSTLY_Q5_K_S", "q4_k_m": "MOSTLY_Q4_K_M",
               "q3_k": "MOSTLY_Q3_K_S", "mxfp4": "MOSTLY_MXFP4_MOE"}
# llama.cpp's substitutes for rows that are not a multiple of 256.
_NARROW = {T.Q4_K: T.Q5_0, T.Q5_K: T.Q5_1, T.Q6_K: T.Q8_0}
_NORMAL, _CONTROL, _UNUSED = 1, 3, 5


def tensor_type(recipe: Recipe, tensor: Tensor) -> T:
    if len(tensor.shape) == 1:
        return T.F32
    kind = T.Q4_K if recipe.gguf_type == "q4_k_m" else T[recipe.gguf_type.upper()]
    if recipe.gguf_type == "q4_k_m" and _wants_six_bits(recipe, tensor):
        kind = T.Q6_K
    columns = tensor.shape[-1]
    if columns % gguf.GGML_QUANT_SIZES[kind][0]:
        kind = _NARROW.get(kind, T.F16)
    if columns % gguf.GGML_QUANT_SIZES[kind][0]:
        kind = T.F16
    return kind


def _wants_six_bits(recipe: Recipe, tensor: Tensor) -> bool:
    """llama.cpp's Q4_K_M uses the larger type for the output, and for v and ffn_down of the first and last eighth and of
    every third layer."""
    if tensor.module == "lm_head":
        return True
    if tensor.module == "model.embed_tokens":
        return recipe.is_tied
    layers, layer = recipe.size.layers, int(tensor.name.split(".")[2])
    more = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
    return more and tensor.module.endswith(("v_proj", "down_proj"))


def _describe(writer: gguf.GGUFWriter, recipe: Recipe) -> None:
    config, size = hf_config(recipe), recipe.size
    writer.add_type("model")
    writer.add_name(f"{recipe.family_name} {recipe.shape} random")
    writer.add_block_count(size.layers)
    writer.add_context_length(size.context)
    writer.add_embedding_length(size.hidden)
    writer.add_feed_forward_length(size.ffn)
    writer.add_head_count(size.heads)
    writer.add_head_count_kv(size.kv_heads)
    writer.add_rope_freq_base(size.theta)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(size.vocab)
    writer.add_rope_dimension_count(recipe.head_size)
    if "head_dim" in config:
        writer.add_key_length(recipe.head_size)
        writer.add_value_length(recipe.head_size)
    if recipe.kind.model_type == "mistral" and recipe.sliding_window:
        writer.add_sliding_window(recipe.sliding_window)
    scaling = config["rope_scaling"]
    if scaling and scaling["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(scaling["rope_type"]))
        writer.add_rope_scaling_factor(scaling["factor"])
        if scaling["rope_type"] == "yarn":
            writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    file_type = _FILE_TYPES.get(recipe.gguf_type, f"MOSTLY_{recipe.gguf_type.upper()}")
    writer.add_file_type(gguf.LlamaFileType[file_type])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)


def describe_tokenizer(writer: gguf.GGUFWriter, recipe: Recipe, rows: int | None = None) -> None:
    """`rows` is the number of tokens with padding; None: the recipe's."""
    family = recipe.kind
    built = tokenizer.build(family.gguf_pre, family.adds_bos)
    vocab = sorted(built.get_vocab().items(), key=lambda item: item[1])
    tokens = [text for text, _ in vocab]
    kinds = [_CONTROL if text in tokenizer.SPECIALS else _NORMAL for text in tokens]
    padding = (rows or recipe.size.vocab) - len(tokens)
    tokens += [f"[PAD{len(vocab) + i}]" for i in range(padding)]
    kinds += [_UNUSED] * padding
    merges = _merges(built)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(family.gguf_pre)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(BOS_ID)
    writer.add_eos_token_id(EOS_ID)
    writer.add_pad_token_id(EOS_ID)
    writer.add_add_bos_token(family.adds_bos)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(tokenizer.CHAT_TEMPLATE)


def _merges(built) -> list[str]:
    return [m if isinstance(m, str) else " ".join(m) for m in json.loads(built.to_str())["model"]["merges"]]


def _contents(recipe: Recipe, source: ValueSource) -> Iterator[tuple[str, T, tuple[int, ...], Iterator[memoryview]]]:
    scaling, size = hf_config(recipe)["rope_scaling"], recipe.size
    if scaling and scaling["rope_type"] == "llama3":
        factors = gguf_names.llama3_factors(scaling, size.theta, recipe.head_size)
        yield "rope_freqs.weight", T.F32, factors.shape, iter([memoryview(factors).cast("B")])
    for tensor in tensors(recipe):
        heads = gguf_names.rotary_heads(tensor.name, size.heads, size.kv_heads) if recipe.kind.permutes_qk else None

        def change(rows: np.ndarray, heads=heads) -> np.ndarray:
            return gguf_names.permute(rows, heads) if heads else rows

        kind = tensor_type(recipe, tensor)
        pieces = source.pieces(tensor, kquants.encoder(kind), change=change)
        yield gguf_names.to_gguf(tensor.name), kind, tensor.shape, pieces


def write(path: Path, recipe: Recipe, source: ValueSource) -> None:
    writer = gguf.GGUFWriter(path, recipe.kind.gguf_arch)
    _describe(writer, recipe)
    describe_tokenizer(writer, recipe)
    contents = list(_contents(recipe, source))
    total = 0
    for name, kind, shape, _ in contents:
        block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        nbytes = int(np.prod(shape)) // block * block_bytes
        writer.add_tensor_info(name, shape, np.dtype(np.float32), nbytes, raw_dtype=kind)
        total += nbytes
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    file, progress = writer.fout[0], Progress(total)
    for _, _, _, pieces in contents:
        writer.write_padding(file, file.tell())
        for piece in pieces:
            file.write(piece)
            progress.add(len(piece))
    writer.write_padding(file, file.tell())
    writer.close()
    progress.finish()
