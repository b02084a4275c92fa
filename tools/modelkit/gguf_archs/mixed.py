"""Gemma 4, gpt-oss and GLM-4.5."""

import numpy as np

from . import DEEPSEEK_SHARED, GATING, SANDWICH, Arch, Config, Weights, deepseek_expert_keys, stack_experts, window_pattern

UNTURNED = 1e30  # the divisor of a frequency that is not rotated


def _gemma4(config: Config) -> dict:
    sliding, shared = window_pattern(config), config["num_kv_shared_layers"]
    layers, ropes = config["num_hidden_layers"], config["rope_parameters"]
    wide = 2 if config["use_double_wide_mlp"] else 1
    full_heads = config["num_global_key_value_heads"] or config["num_key_value_heads"]
    keys = {
        "attention.sliding_window": config["sliding_window"], "attention.sliding_window_pattern": sliding,
        "attention.shared_kv_layers": shared, "embedding_length_per_layer_input": config["hidden_size_per_layer_input"],
        "final_logit_softcapping": config["final_logit_softcapping"],
        "feed_forward_length": [config["intermediate_size"] * (wide if i >= layers - shared else 1) for i in range(layers)],
        "attention.head_count_kv": [config["num_key_value_heads"] if each else full_heads for each in sliding],
        "rope.freq_base": ropes["full_attention"]["rope_theta"], "rope.freq_base_swa": ropes["sliding_attention"]["rope_theta"]}
    for suffix, size in (("", config["global_head_dim"]), ("_swa", config["head_dim"])):
        keys |= {f"attention.key_length{suffix}": size, f"attention.value_length{suffix}": size,
                 f"rope.dimension_count{suffix}": size}
    if config["enable_moe_block"]:
        keys |= {"expert_count": config["num_experts"], "expert_used_count": config["top_k_experts"],
                 "expert_feed_forward_length": config["moe_intermediate_size"]}
    return keys


def _gemma4_rope(config: Config) -> Weights:
    size = config["global_head_dim"]
    turned = int(size * config["rope_parameters"]["full_attention"]["partial_rotary_factor"]) // 2
    return {"rope_freqs.weight": np.array([1.0] * turned + [UNTURNED] * (size // 2 - turned), np.float32)}


def _gpt_oss(config: Config) -> dict:
    return {"attention.sliding_window": config["sliding_window"], "expert_count": config["num_local_experts"],
            "expert_used_count": config["num_experts_per_tok"], "expert_feed_forward_length": config["intermediate_size"]}


def _glm4moe(config: Config) -> dict:
    extra = config["num_nextn_predict_layers"]
    return deepseek_expert_keys(config) | {
        "block_count": config["num_hidden_layers"] + extra, "nextn_predict_layers": extra,
        "leading_dense_block_count": config["first_k_dense_replace"], "expert_gating_func": GATING["sigmoid"],
        "rope.dimension_count": int(config["head_dim"] * config["partial_rotary_factor"])}


# Of the multi-token prediction layer.
PREDICTION = {each: f"nextn.{each}" for each in ("eh_proj", "enorm", "hnorm", "embed_tokens")} | {
    f"shared_head.{each}": f"nextn.shared_head_{each}" for each in ("norm", "head")}
ARCHS = {
    "gemma4": Arch(
        _gemma4, extra=_gemma4_rope,
        names=SANDWICH | {
            "post_feedforward_layernorm_1": "post_ffw_norm_1", "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
            "post_feedforward_layernorm_2": "post_ffw_norm_2", "router.proj": "ffn_gate_inp",
            "per_layer_input_gate": "inp_gate", "per_layer_projection": "proj", "post_per_layer_input_norm": "post_norm"},
        tensors={"router.scale": "ffn_gate_inp.scale", "router.per_expert_scale": "ffn_down_exps.scale",
                 "experts.gate_up_proj": "ffn_gate_up_exps.weight", "experts.down_proj": "ffn_down_exps.weight",
                 "layer_scalar": "layer_output_scale.weight"},
        top={"model.embed_tokens_per_layer": "per_layer_token_embd", "model.per_layer_model_projection": "per_layer_model_proj",
             "model.per_layer_projection_norm": "per_layer_proj_norm"}),
    "gpt-oss": Arch(
        _gpt_oss, tensors={"self_attn.sinks": "attn_sinks.weight"},
        names={"post_attention_layernorm": "post_attention_norm", "mlp.router": "ffn_gate_inp",
               "mlp.experts.gate_proj": "ffn_gate_exps", "mlp.experts.up_proj": "ffn_up_exps",
               "mlp.experts.down_proj": "ffn_down_exps"}),
    "glm4moe": Arch(
        _glm4moe, change=stack_experts, names={"post_attention_layernorm": "post_attention_norm"} | PREDICTION | DEEPSEEK_SHARED,
        tensors={"mlp.gate.e_score_correction_bias": "exp_probs_b.bias"}),
}
