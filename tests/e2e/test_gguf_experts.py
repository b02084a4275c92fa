"""Experts in a GGUF, stacked as llama.cpp's converter writes them, compared with mlx-lm on the decoded weights."""

import json

import gguf
import mlx.core as mx
import numpy as np
import pytest
from conftest import assert_close, prompts_of
from gguf import GGMLQuantizationType as T
from modelkit import gguf_names, oracle

PROMPTS = prompts_of(1, 65)
EXPERTS = {"gate": "ffn_gate_inp", "switch_mlp.gate_proj": "ffn_gate_exps", "switch_mlp.up_proj": "ffn_up_exps",
           "switch_mlp.down_proj": "ffn_down_exps"}


def gguf_name(name: str) -> str:
    for ours, theirs in EXPERTS.items():
        for ffn in ("mlp", "block_sparse_moe"):
            if f".{ffn}.{ours}." in name:
                return f"blk.{name.split('.')[2]}.{theirs}.weight"
    return gguf_names.to_gguf(name)


def write(path, arch: str, config: dict, weights: dict[str, np.ndarray], kind: T) -> dict[str, np.ndarray]:
    """Returns the decoded weights that a reader of the file must find, by their original names."""
    writer = gguf.GGUFWriter(path, arch)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_expert_count(config.get("num_experts") or config["num_local_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    if "moe_intermediate_size" in config:
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
        writer.add_key_length(config["head_dim"])
    found = {}
    for name, values in weights.items():
        # Routers and norms stay in float32.
        chosen = T.F32 if values.ndim == 1 or ".gate.weight" in name else kind
        heads = gguf_names.rotary_heads(name, config["num_attention_heads"], config["num_key_value_heads"])
        permuted = arch == "llama" and heads
        stored = gguf.quants.quantize(gguf_names.permute(values, heads) if permuted else values, chosen)
        writer.add_tensor(gguf_name(name), stored, raw_dtype=chosen)
        decoded = gguf.quants.dequantize(stored, chosen).astype(np.float32).reshape(values.shape)
        found[name] = gguf_names.unpermute(decoded, heads) if permuted else decoded
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return found


@pytest.mark.parametrize("kind", [T.F32, T.Q8_0, T.Q4_0, T.MXFP4], ids=lambda kind: kind.name)
@pytest.mark.parametrize("family, arch", [("qwen3_moe-mlx", "qwen3moe"), ("mixtral-mlx", "llama")])
def test_logits(family, arch, kind, make_model, dump_logits, tmp_path):
    overrides = (("mlp_only_layers", ()),) if arch == "qwen3moe" else ()  # in qwen3moe, every layer has experts
    folder = make_model(family, overrides=overrides)
    config = json.loads((folder / "config.json").read_text())
    weights = {name: np.array(value) for name, value in mx.load(str(folder / "model.safetensors")).items()}
    path = tmp_path / "experts.gguf"
    wanted = oracle.logits(oracle.load(config, write(path, arch, config, weights, kind)), PROMPTS)
    assert_close(dump_logits(path, PROMPTS).logits, wanted, 1e-4)
