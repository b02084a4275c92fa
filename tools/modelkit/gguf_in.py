"""Reads a GGUF with the gguf package, as an independent decoder for the tests. Returns float32 in HF's layout."""

from pathlib import Path

import gguf
import numpy as np

from . import gguf_names

PERMUTED = ("llama", "smollm3")  # architectures whose q and k rows the converter interleaves


def fields(reader: gguf.GGUFReader) -> dict:
    return {key: field.contents() for key, field in reader.fields.items()}


def weights(path: Path | str) -> dict[str, np.ndarray]:
    """Returns a map of HF names to float32 arrays, without rope_freqs.weight: the HF config has the scaling."""
    reader = gguf.GGUFReader(path)
    meta = fields(reader)
    arch = meta["general.architecture"]
    heads, kv_heads = meta[f"{arch}.attention.head_count"], meta[f"{arch}.attention.head_count_kv"]
    found = {}
    for tensor in reader.tensors:
        if tensor.name == "rope_freqs.weight":
            continue
        name = gguf_names.from_gguf(tensor.name)
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        values = values.reshape(tuple(int(n) for n in reversed(tensor.shape)))
        rotary = gguf_names.rotary_heads(name, heads, kv_heads)
        found[name] = gguf_names.unpermute(values, rotary) if rotary and arch in PERMUTED else values
    return found


def llama_config(path: Path | str) -> dict:
    """Returns config.json for a llama-architecture GGUF without rope scaling (SmolLM2)."""
    reader = gguf.GGUFReader(path)
    meta = fields(reader)
    tied = all(tensor.name != "output.weight" for tensor in reader.tensors)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": meta["llama.embedding_length"],
        "num_hidden_layers": meta["llama.block_count"],
        "intermediate_size": meta["llama.feed_forward_length"],
        "num_attention_heads": meta["llama.attention.head_count"],
        "num_key_value_heads": meta["llama.attention.head_count_kv"],
        "rms_norm_eps": meta["llama.attention.layer_norm_rms_epsilon"],
        "vocab_size": len(meta["tokenizer.ggml.tokens"]),
        "max_position_embeddings": meta["llama.context_length"],
        "rope_theta": meta["llama.rope.freq_base"],
        "tie_word_embeddings": tied,
        "torch_dtype": "float32",
    }
