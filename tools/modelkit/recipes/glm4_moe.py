"""GLM-4.5 and 4.6: grouped-query attention with rope on half of each head, and DeepSeek-V3's experts."""

from . import CustomFamily
from ..tensor import TensorList

TINY = {
    "architectures": ["Glm4MoeForCausalLM"], "model_type": "glm4_moe", "hidden_size": 128, "intermediate_size": 352,
    "moe_intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 12, "num_key_value_heads": 2,
    "head_dim": 32, "n_routed_experts": 16, "n_shared_experts": 1, "num_experts_per_tok": 4,
    "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
    "attention_bias": True, "use_qk_norm": True, "partial_rotary_factor": 0.5, "hidden_act": "silu",
    "rms_norm_eps": 1e-5, "vocab_size": 512, "max_position_embeddings": 2048, "rope_theta": 1000000,
    "rope_scaling": None, "tie_word_embeddings": False, "num_nextn_predict_layers": 1,
}
AIR = {
    "hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 46,
    "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "n_routed_experts": 128,
    "num_experts_per_tok": 8, "routed_scaling_factor": 1.0, "use_qk_norm": False, "vocab_size": 151552,
    "max_position_embeddings": 131072,
}
GLM_4_5 = AIR | {
    "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 92,
    "n_routed_experts": 160, "first_k_dense_replace": 3, "routed_scaling_factor": 2.5, "use_qk_norm": True,
}


def _layer(found: TensorList, at: str, config: dict, sparse: bool, stacked: bool) -> None:
    hidden, head, inner = config["hidden_size"], config["head_dim"], config["moe_intermediate_size"]
    q, kv = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    bias = 0.5 if config["attention_bias"] else 0.0
    found.norm(f"{at}.input_layernorm", hidden)
    found.linear(f"{at}.self_attn.q_proj", q, hidden, bias)
    found.linear(f"{at}.self_attn.k_proj", kv, hidden, bias)
    found.linear(f"{at}.self_attn.v_proj", kv, hidden, bias)
    if config["use_qk_norm"]:
        found.norm(f"{at}.self_attn.q_norm", head)
        found.norm(f"{at}.self_attn.k_norm", head)
    found.linear(f"{at}.self_attn.o_proj", hidden, q, gain=0.2)
    found.norm(f"{at}.post_attention_layernorm", hidden)
    if not sparse:
        found.mlp(f"{at}.mlp", hidden, config["intermediate_size"])
        return
    found.linear(f"{at}.mlp.gate", config["n_routed_experts"], hidden)
    found.values(f"{at}.mlp.gate.e_score_correction_bias", (config["n_routed_experts"],), std=0.1)
    found.experts(f"{at}.mlp", config["n_routed_experts"], hidden, inner, stacked)
    found.mlp(f"{at}.mlp.shared_experts", hidden, inner * config["n_shared_experts"])


def _prediction_layer(found: TensorList, at: str, config: dict) -> None:
    """Adds the multi-token prediction layer, which comes after the model's layers."""
    hidden = config["hidden_size"]
    found.linear(f"{at}.embed_tokens", config["vocab_size"], hidden)
    found.linear(f"{at}.eh_proj", hidden, 2 * hidden)
    found.norm(f"{at}.enorm", hidden)
    found.norm(f"{at}.hnorm", hidden)
    _layer(found, at, config, sparse=True, stacked=False)
    found.norm(f"{at}.shared_head.norm", hidden)
    found.linear(f"{at}.shared_head.head", config["vocab_size"], hidden)


def tensors(config: dict, stacked: bool = False) -> TensorList:
    found, hidden, layers = TensorList(), config["hidden_size"], config["num_hidden_layers"]
    found.linear("model.embed_tokens", config["vocab_size"], hidden)
    for layer in range(layers):
        _layer(found, f"model.layers.{layer}", config, layer >= config["first_k_dense_replace"], stacked)
    if not stacked:  # mlx-lm's converter drops it
        _prediction_layer(found, f"model.layers.{layers}", config)
    found.norm("model.norm", hidden)
    found.linear("lm_head", config["vocab_size"], hidden)
    return found


def stacked_tensors(config: dict) -> TensorList:
    return tensors(config, stacked=True)


FAMILIES = {
    "glm4_moe": CustomFamily(
        "GLM-4.5: rope on half of each head, DeepSeek-V3's experts, a prediction layer that is not loaded", TINY,
        tensors, {"glm-4.5-air": AIR, "glm-4.5": GLM_4_5}),
    "glm4_moe-mlx": CustomFamily("GLM-4.5: as mlx-lm converts it", TINY | {"use_qk_norm": False}, stacked_tensors),
}
