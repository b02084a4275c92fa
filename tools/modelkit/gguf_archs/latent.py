"""Architectures with latent attention: DeepSeek, GLM-4.7-Flash and MiniCPM3."""

import numpy as np

from . import DEEPSEEK_SHARED, GATING, Arch, Config, Weights, deepseek_expert_keys, long_rope, stack_experts

ATTENTION = {"self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
             "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
             "self_attn.kv_b_proj": "attn_kv_b", "self_attn.k_b": "attn_k_b", "self_attn.v_b": "attn_v_b"}


def _deepseek2(config: Config) -> dict:
    rank, rope = config["kv_lora_rank"], config["qk_rope_head_dim"]
    keys = {
        "attention.head_count_kv": 1, "attention.kv_lora_rank": rank, "attention.key_length": rank + rope,
        "attention.value_length": rank, "attention.key_length_mla": config["qk_nope_head_dim"] + rope,
        "attention.value_length_mla": config["v_head_dim"], "rope.dimension_count": rope,
        "leading_dense_block_count": config["first_k_dense_replace"],
        "expert_gating_func": GATING[config.get("scoring_func", "sigmoid")]} | deepseek_expert_keys(config)
    if config["q_lora_rank"]:
        keys["attention.q_lora_rank"] = config["q_lora_rank"]
    if config["rope_scaling"]:
        keys["rope.scaling.yarn_log_multiplier"] = 0.1 * config["rope_scaling"]["mscale_all_dim"]
    return keys


def _split_heads(weights: Weights, config: Config) -> Weights:
    """kv_b_proj as a matrix per head for the keys, transposed, and one for the values."""
    heads, nope, found = config["num_attention_heads"], config["qk_nope_head_dim"], {}
    for name, value in stack_experts(weights, config).items():
        if name.endswith(".kv_b_proj.weight"):
            keys, values = np.split(value.reshape(heads, -1, value.shape[1]), [nope], axis=1)
            found[name.replace("kv_b_proj", "k_b")] = keys.swapaxes(1, 2)
            found[name.replace("kv_b_proj", "v_b")] = values
        else:
            found[name] = value
    return found


def _minicpm3(config: Config) -> dict:
    return {"attention.q_lora_rank": config["q_lora_rank"], "attention.kv_lora_rank": config["kv_lora_rank"],
            "attention.key_length": config["qk_nope_head_dim"] + config["qk_rope_head_dim"],
            "rope.dimension_count": config["qk_rope_head_dim"]}


ARCHS = {
    "deepseek2": Arch(_deepseek2, names=ATTENTION | DEEPSEEK_SHARED, change=_split_heads,
                      tensors={"mlp.gate.e_score_correction_bias": "exp_probs_b.bias"}),
    "minicpm3": Arch(_minicpm3, names=ATTENTION, extra=long_rope),
}
