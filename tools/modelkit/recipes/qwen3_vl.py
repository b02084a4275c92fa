"""Qwen3-VL's language model: Qwen3, dense or with experts, whose positions have three axes. recipes/vision.py adds the tower."""

import math

from ..tensor import TensorList
from . import CustomFamily, text_config

TEXT = {
    "model_type": "qwen3_vl_text", "hidden_size": 128, "num_hidden_layers": 4, "intermediate_size": 192, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 64, "attention_bias": False, "hidden_act": "silu", "vocab_size": 512,
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "rope_theta": 5000000.0, "tie_word_embeddings": True,
    "rope_scaling": {"mrope_interleaved": True, "mrope_section": [12, 10, 10], "rope_type": "default"},
}
MOE_TEXT = TEXT | {
    "model_type": "qwen3_vl_moe_text", "tie_word_embeddings": False, "num_experts": 16, "num_experts_per_tok": 4,
    "moe_intermediate_size": 96, "decoder_sparse_step": 1, "mlp_only_layers": [1], "norm_topk_prob": True,
}


def _experts(found: TensorList, at: str, config: dict, published: bool) -> None:
    hidden, inner, count = config["hidden_size"], config["moe_intermediate_size"], config["num_experts"]
    found.linear(f"{at}.gate", count, hidden)
    if not published:
        found.experts(at, count, hidden, inner, stacked=True)
        return
    # Inputs before outputs, and gate before up.
    found.values(f"{at}.experts.gate_up_proj", (count, hidden, 2 * inner), 0.0, 1 / math.sqrt(hidden))
    found.values(f"{at}.experts.down_proj", (count, inner, hidden), 0.0, 0.2 / math.sqrt(inner))


def text_tensors(whole: dict, prefix: str, head: str, published: bool = True) -> TensorList:
    config, found = text_config(whole), TensorList()
    hidden, size = config["hidden_size"], config["head_dim"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    found.linear(f"{prefix}.embed_tokens", config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"{prefix}.layers.{layer}"
        found.norm(f"{at}.input_layernorm", hidden)
        found.linear(f"{at}.self_attn.q_proj", heads * size, hidden)
        found.linear(f"{at}.self_attn.k_proj", kv_heads * size, hidden)
        found.linear(f"{at}.self_attn.v_proj", kv_heads * size, hidden)
        found.norm(f"{at}.self_attn.q_norm", size)
        found.norm(f"{at}.self_attn.k_norm", size)
        found.linear(f"{at}.self_attn.o_proj", hidden, heads * size, gain=0.2)
        found.norm(f"{at}.post_attention_layernorm", hidden)
        if config.get("num_experts") and layer not in config["mlp_only_layers"]:
            _experts(found, f"{at}.mlp", config, published)
        else:
            found.mlp(f"{at}.mlp", hidden, config["intermediate_size"])
    found.norm(f"{prefix}.norm", hidden)
    if not config["tie_word_embeddings"]:
        found.linear(head, config["vocab_size"], hidden)
    return found


FAMILIES = {
    "qwen3-vl-text": CustomFamily(
        "Qwen3-VL without its vision tower", TEXT | {"architectures": ["Qwen3VLTextModel"]},
        lambda c: text_tensors(c, "model", "lm_head")),
    "qwen3-vl-moe-text": CustomFamily(
        "Qwen3-VL with experts, without its vision tower", MOE_TEXT | {"architectures": ["Qwen3VLMoeTextModel"]},
        lambda c: text_tensors(c, "model", "lm_head", published=False)),
}
