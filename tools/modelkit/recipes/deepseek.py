"""DeepSeek-V2 and V3 and GLM-4.7-Flash: latent attention, with routed and shared experts."""

from ..tensor import TensorList
from . import CustomFamily
from .mla import attention

# Settings of all families, with the size ratios of V2-Lite.
COMMON = {
    "hidden_size": 128, "intermediate_size": 320, "moe_intermediate_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 4, "kv_lora_rank": 32, "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16, "v_head_dim": 32, "moe_layer_freq": 1, "attention_bias": False, "hidden_act": "silu",
    "rms_norm_eps": 1e-6, "vocab_size": 512, "max_position_embeddings": 2048, "rope_theta": 10000,
    "tie_word_embeddings": False,
}


def _yarn(mscale: float, original: int) -> dict:
    return {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": mscale, "mscale_all_dim": mscale,
            "original_max_position_embeddings": original, "type": "yarn"}


V2_LITE = COMMON | {
    "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "q_lora_rank": None,
    "n_routed_experts": 16, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
    "n_group": 1, "topk_group": 1, "topk_method": "greedy", "scoring_func": "softmax", "norm_topk_prob": False,
    "routed_scaling_factor": 1.0, "rope_scaling": _yarn(0.707, 128), "aux_loss_alpha": 0.001, "seq_aux": True,
}
V2 = V2_LITE | {
    "q_lora_rank": 48, "n_group": 8, "topk_group": 3, "topk_method": "group_limited_greedy",
    "routed_scaling_factor": 16.0,
}
V3 = COMMON | {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "num_hidden_layers": 5,
    "q_lora_rank": 48, "n_routed_experts": 32, "n_shared_experts": 1, "num_experts_per_tok": 8,
    "first_k_dense_replace": 3, "n_group": 8, "topk_group": 4, "topk_method": "noaux_tc", "scoring_func": "sigmoid",
    "norm_topk_prob": True, "routed_scaling_factor": 2.5, "rope_scaling": _yarn(1.0, 128),
    "num_nextn_predict_layers": 1, "ep_size": 1,
}
GLM_FLASH = COMMON | {
    "architectures": ["Glm4MoeLiteForCausalLM"], "model_type": "glm4_moe_lite", "hidden_size": 128,
    "num_attention_heads": 5, "num_key_value_heads": 5, "q_lora_rank": 48, "qk_nope_head_dim": 48, "v_head_dim": 64,
    "n_routed_experts": 16, "n_shared_experts": 1, "num_experts_per_tok": 4, "first_k_dense_replace": 1,
    "n_group": 1, "topk_group": 1, "topk_method": "noaux_tc", "norm_topk_prob": True, "routed_scaling_factor": 1.8,
    "rms_norm_eps": 1e-5, "rope_theta": 1000000, "rope_scaling": None, "partial_rotary_factor": 1.0,
    "num_nextn_predict_layers": 1,
}
REAL = {
    "deepseek-v2-lite": {
        "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 27,
        "num_attention_heads": 16, "num_key_value_heads": 16, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64, "vocab_size": 102400,
        "max_position_embeddings": 163840, "rope_scaling": _yarn(0.707, 4096),
    },
    "deepseek-v3": {
        "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
        "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256,
        "vocab_size": 129280, "max_position_embeddings": 163840, "rope_scaling": _yarn(1.0, 4096),
    },
    "glm-4.7-flash": {
        "hidden_size": 2048, "intermediate_size": 10240, "moe_intermediate_size": 1536, "num_hidden_layers": 47,
        "num_attention_heads": 20, "num_key_value_heads": 20, "q_lora_rank": 768, "kv_lora_rank": 512,
        "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "n_routed_experts": 64,
        "vocab_size": 154880, "max_position_embeddings": 202752,
    },
}


def is_sparse(config: dict, layer: int) -> bool:
    return layer >= config["first_k_dense_replace"] and layer % config["moe_layer_freq"] == 0


def _layer(found: TensorList, config: dict, layer: int, stacked: bool) -> None:
    at, hidden, inner = f"model.layers.{layer}", config["hidden_size"], config["moe_intermediate_size"]
    found.norm(f"{at}.input_layernorm", hidden)
    attention(found, f"{at}.self_attn", config, config["v_head_dim"], stacked and has_split_heads(config))
    found.norm(f"{at}.post_attention_layernorm", hidden)
    if not is_sparse(config, layer):
        found.mlp(f"{at}.mlp", hidden, config["intermediate_size"])
        return
    found.linear(f"{at}.mlp.gate", config["n_routed_experts"], hidden)
    if config["topk_method"] == "noaux_tc":
        found.values(f"{at}.mlp.gate.e_score_correction_bias", (config["n_routed_experts"],), std=0.1)
    found.experts(f"{at}.mlp", config["n_routed_experts"], hidden, inner, stacked)
    found.mlp(f"{at}.mlp.shared_experts", hidden, inner * config["n_shared_experts"])


def tensors(config: dict, stacked: bool = False) -> TensorList:
    found, hidden = TensorList(), config["hidden_size"]
    found.linear("model.embed_tokens", config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        _layer(found, config, layer, stacked)
    found.norm("model.norm", hidden)
    found.linear("lm_head", config["vocab_size"], hidden)
    return found


def tensors_and_mtp(config: dict) -> TensorList:
    """The multi-token prediction layer comes after the last layer; its embeddings and output matrix are copies."""
    found, hidden = tensors(config), config["hidden_size"]
    at = f"model.layers.{config['num_hidden_layers']}"
    _layer(found, config, config["num_hidden_layers"], False)
    for name in ("enorm", "hnorm", "shared_head.norm"):
        found.norm(f"{at}.{name}", hidden)
    found.linear(f"{at}.eh_proj", hidden, 2 * hidden)
    return found


def has_split_heads(config: dict) -> bool:
    """mlx-lm splits kv_b_proj into embed_q and unembed_out, but not for V2."""
    return config["model_type"] != "deepseek_v2"


def stacked_tensors(config: dict) -> TensorList:
    return tensors(config, stacked=True)


FAMILIES = {
    "deepseek_v2-lite": CustomFamily(
        "DeepSeek-V2-Lite: latent attention, experts selected by softmax, 2 shared", V2_LITE, tensors,
        {"deepseek-v2-lite": REAL["deepseek-v2-lite"]}),
    "deepseek_v2": CustomFamily("DeepSeek-V2: like Lite, with low-rank queries and experts from the best groups", V2, tensors),
    "deepseek_v2-mlx": CustomFamily("DeepSeek-V2: as mlx-lm converts it", V2, stacked_tensors),
    "deepseek_v3": CustomFamily(
        "DeepSeek-V3, R1: experts selected by sigmoid and a bias, as published", V3, tensors,
        {"deepseek-v3": REAL["deepseek-v3"]}),
    "deepseek_v3-mtp": CustomFamily("DeepSeek-V3 with its multi-token prediction layer", V3, tensors_and_mtp),
    "deepseek_v3-mlx": CustomFamily("DeepSeek-V3: as mlx-lm converts it, heads and experts stacked", V3, stacked_tensors),
    "glm4_moe_lite": CustomFamily(
        "GLM-4.7-Flash: DeepSeek-V3's layers, no groups", GLM_FLASH, tensors,
        {"glm-4.7-flash": REAL["glm-4.7-flash"]}),
    "glm4_moe_lite-mlx": CustomFamily("GLM-4.7-Flash: as mlx-lm converts it", GLM_FLASH, stacked_tensors),
}
