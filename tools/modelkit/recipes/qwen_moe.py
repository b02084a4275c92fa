"""Qwen's mixture-of-experts models with full attention: Qwen3 MoE, and Qwen2 MoE with its shared expert."""

from . import CustomFamily
from ..tensor import TensorList

QWEN3 = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "intermediate_size": 384,
    "moe_intermediate_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "num_experts": 16,
    "num_experts_per_tok": 4,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [1],
    "vocab_size": 512,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "rope_scaling": None,
    "attention_bias": False,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "sliding_window": None,
    "max_window_layers": 4,
    "output_router_logits": False,
    "router_aux_loss_coef": 0.001,
}
QWEN3_30B = {
    "hidden_size": 2048, "num_hidden_layers": 48, "intermediate_size": 6144, "moe_intermediate_size": 768,
    "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
    "num_experts_per_tok": 8, "mlp_only_layers": [], "vocab_size": 151936, "max_position_embeddings": 40960,
    "max_window_layers": 48,
}
QWEN2 = {k: v for k, v in QWEN3.items() if k not in ("head_dim", "attention_bias", "mlp_only_layers")} | {
    "architectures": ["Qwen2MoeForCausalLM"],
    "model_type": "qwen2_moe",
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "num_experts": 12,
    "shared_expert_intermediate_size": 256,
    "norm_topk_prob": False,
}


def is_sparse(config: dict, layer: int) -> bool:
    return (layer + 1) % config["decoder_sparse_step"] == 0 and layer not in config.get("mlp_only_layers", [])


def tensors(config: dict, stacked: bool = False) -> TensorList:
    found, hidden = TensorList(), config["hidden_size"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head = config.get("head_dim", hidden // heads)
    bias = 0.5 if config["model_type"] == "qwen2_moe" else 0.0
    found.linear("model.embed_tokens", config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        found.norm(f"{at}.input_layernorm", hidden)
        found.linear(f"{at}.self_attn.q_proj", heads * head, hidden, bias)
        found.linear(f"{at}.self_attn.k_proj", kv_heads * head, hidden, bias)
        found.linear(f"{at}.self_attn.v_proj", kv_heads * head, hidden, bias)
        if config["model_type"] == "qwen3_moe":
            found.norm(f"{at}.self_attn.q_norm", head)
            found.norm(f"{at}.self_attn.k_norm", head)
        found.linear(f"{at}.self_attn.o_proj", hidden, heads * head, gain=0.2)
        found.norm(f"{at}.post_attention_layernorm", hidden)
        if not is_sparse(config, layer):
            found.mlp(f"{at}.mlp", hidden, config["intermediate_size"])
            continue
        found.linear(f"{at}.mlp.gate", config["num_experts"], hidden)
        found.experts(f"{at}.mlp", config["num_experts"], hidden, config["moe_intermediate_size"], stacked)
        if shared := config.get("shared_expert_intermediate_size"):
            found.mlp(f"{at}.mlp.shared_expert", hidden, shared)
            found.linear(f"{at}.mlp.shared_expert_gate", 1, hidden)
    found.norm("model.norm", hidden)
    if not config["tie_word_embeddings"]:
        found.linear("lm_head", config["vocab_size"], hidden)
    return found


def stacked_tensors(config: dict) -> TensorList:
    return tensors(config, stacked=True)


FAMILIES = {
    "qwen3_moe": CustomFamily("Qwen3 MoE: experts, as published", QWEN3, tensors),
    "qwen3_moe-mlx": CustomFamily(
        "Qwen3 MoE: as mlx-lm converts it, experts stacked", QWEN3, stacked_tensors,
        {"qwen3-30b-a3b": QWEN3_30B, "qwen3-30b-a3b-2layers": QWEN3_30B | {"num_hidden_layers": 2}}),
    "qwen2_moe": CustomFamily("Qwen2 MoE: a gated shared expert, biases on q, k and v", QWEN2, tensors),
    "qwen2_moe-mlx": CustomFamily("Qwen2 MoE: as mlx-lm converts it", QWEN2, stacked_tensors),
}
