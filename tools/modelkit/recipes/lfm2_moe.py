"""LFM2 with experts: gated short convolutions, attention in some layers, experts after the first layers."""

from . import CustomFamily
from ..tensor import TensorList

TINY = {
    "architectures": ["Lfm2MoeForCausalLM"], "model_type": "lfm2_moe", "hidden_size": 128, "num_hidden_layers": 6,
    "intermediate_size": 448, "moe_intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 1,
    "num_dense_layers": 2, "num_experts": 16, "num_experts_per_tok": 4, "use_expert_bias": True,
    "norm_topk_prob": True, "routed_scaling_factor": 1.5, "max_position_embeddings": 2048, "vocab_size": 512,
    "norm_eps": 1e-5, "conv_bias": False, "conv_L_cache": 3, "rope_theta": 1e6, "tie_embedding": True,
    "layer_types": ["conv", "conv", "full_attention", "conv", "conv", "full_attention"],
}
LFM2_8B_A1B = {
    "hidden_size": 2048, "num_hidden_layers": 24, "intermediate_size": 7168, "moe_intermediate_size": 1792,
    "num_attention_heads": 32, "num_key_value_heads": 8, "num_experts": 32, "routed_scaling_factor": 1.0,
    "max_position_embeddings": 128000, "vocab_size": 65536,
    "layer_types": ["full_attention" if layer in (2, 6, 10, 14, 18, 21) else "conv" for layer in range(24)],
}


def tensors(config: dict, stacked: bool = False) -> TensorList:
    hidden = config["hidden_size"]
    head = hidden // config["num_attention_heads"]
    kv = head * config["num_key_value_heads"]
    names = ("gate_proj", "up_proj", "down_proj") if stacked else ("w1", "w3", "w2")
    found = TensorList()
    found.linear("model.embed_tokens", config["vocab_size"], hidden)
    for layer, kind in enumerate(config["layer_types"]):
        at = f"model.layers.{layer}"
        found.norm(f"{at}.operator_norm", hidden)
        if kind == "full_attention":
            found.linear(f"{at}.self_attn.q_proj", hidden, hidden)
            found.linear(f"{at}.self_attn.k_proj", kv, hidden)
            found.linear(f"{at}.self_attn.v_proj", kv, hidden)
            found.norm(f"{at}.self_attn.q_layernorm", head)
            found.norm(f"{at}.self_attn.k_layernorm", head)
            found.linear(f"{at}.self_attn.out_proj", hidden, hidden, gain=0.2)
        else:
            found.linear(f"{at}.conv.in_proj", 3 * hidden, hidden)
            taps = config["conv_L_cache"]
            found.values(f"{at}.conv.conv.weight", (hidden, taps, 1) if stacked else (hidden, 1, taps), std=0.6)
            found.linear(f"{at}.conv.out_proj", hidden, hidden, gain=0.3)
        found.norm(f"{at}.ffn_norm", hidden)
        ffn = f"{at}.feed_forward"
        if layer < config["num_dense_layers"]:
            inner = config["intermediate_size"]
            found.linear(f"{ffn}.{names[0]}", inner, hidden)
            found.linear(f"{ffn}.{names[1]}", inner, hidden)
            found.linear(f"{ffn}.{names[2]}", hidden, inner, gain=0.2)
            continue
        found.linear(f"{ffn}.gate", config["num_experts"], hidden)
        if config["use_expert_bias"]:
            found.values(f"{ffn}.expert_bias", (config["num_experts"],), std=0.1)
        found.experts(ffn, config["num_experts"], hidden, config["moe_intermediate_size"], stacked, names)
    found.norm("model.embedding_norm", hidden)
    return found


def stacked_tensors(config: dict) -> TensorList:
    return tensors(config, stacked=True)


FAMILIES = {
    "lfm2_moe": CustomFamily("LFM2 with experts, as published", TINY, tensors, {"lfm2-8b-a1b": LFM2_8B_A1B}),
    "lfm2_moe-mlx": CustomFamily("LFM2 with experts, as mlx-lm converts it", TINY, stacked_tensors),
}
