"""Granite, with Mamba-2 layers from version 4 on, and Nemotron-H."""

import numpy as np

from . import DEEPSEEK_SHARED, Arch, Config, Weights, deepseek_expert_keys, stack_experts

VECTORS = {"A_log": "ssm_a", "dt_bias": "ssm_dt.bias", "D": "ssm_d"}
MODULES = {"in_proj": "ssm_in", "conv1d": "ssm_conv1d", "norm": "ssm_norm", "out_proj": "ssm_out"}


def _ssm(heads: int, inner: int, groups: int, state: int, taps: int) -> dict:
    return {"ssm.time_step_rank": heads, "ssm.inner_size": inner, "ssm.group_count": groups, "ssm.state_size": state,
            "ssm.conv_kernel": taps}


def _stored(weights: Weights, groups: int) -> Weights:
    """-exp(A_log); A and D as columns; convolutions without their axis of one; a row of norm weights per group."""
    found = {}
    for name, value in weights.items():
        if name.endswith(".A_log"):
            value = -np.exp(value)
        if name.endswith((".A_log", ".D")):
            value = value.reshape(-1, 1)
        if name.endswith(".conv1d.weight"):
            value = value.reshape(len(value), -1)
        if name.endswith((".mamba.norm.weight", ".mixer.norm.weight")):
            value = value.reshape(groups, -1)
        found[name] = value
    return found


def _granite(config: Config) -> dict:
    keys = {"attention.scale": config["attention_multiplier"], "embedding_scale": float(config["embedding_multiplier"]),
            "residual_scale": config["residual_multiplier"], "logit_scale": float(config["logits_scaling"])}
    if "layer_types" not in config:
        return keys
    # Granite 4, also without Mamba layers.
    return keys | _ssm(config["mamba_n_heads"], config["mamba_expand"] * config["hidden_size"], config["mamba_n_groups"],
                       config["mamba_d_state"], config["mamba_d_conv"]) | {
        "attention.head_count_kv": [config["num_key_value_heads"] if kind == "attention" else 0 for kind in config["layer_types"]],
        "expert_count": config["num_local_experts"], "expert_used_count": config["num_experts_per_tok"],
        "expert_shared_feed_forward_length": config["shared_intermediate_size"],
        "rope.dimension_count": config["hidden_size"] // config["num_attention_heads"],
        "rope.scaling.finetuned": config["position_embedding_type"] == "rope"}


def _granite_tensors(weights: Weights, config: Config) -> Weights:
    """Fused gate and up matrices are split; the shared expert is the MLP of a model without experts."""
    found = {}
    for name, value in _stored(weights, config.get("mamba_n_groups", 1)).items():
        shared = ".mlp.shared_experts" if config.get("num_local_experts") else ".mlp"
        name = name.replace(".shared_mlp", shared).replace(".block_sparse_moe", ".mlp.switch_mlp")
        if ".input_linear." in name:
            gate, up = np.split(value, 2, axis=-2)
            found |= {name.replace("input_linear", "gate_proj"): gate, name.replace("input_linear", "up_proj"): up}
        else:
            found[name.replace("output_linear", "down_proj")] = value
    return found


def _nemotron(config: Config) -> dict:
    pattern, kv = config["hybrid_override_pattern"], config["num_key_value_heads"]
    width = config["moe_intermediate_size"] if "E" in pattern else config["intermediate_size"]
    inner = config["mamba_num_heads"] * config["mamba_head_dim"]
    keys = _ssm(config["mamba_num_heads"], inner, config["n_groups"], config["ssm_state_size"], config["conv_kernel"]) | {
        "attention.head_count_kv": [kv if kind == "*" else 0 for kind in pattern],
        "feed_forward_length": [width if kind in "-E" else 0 for kind in pattern],
        "attention.layer_norm_epsilon": config["layer_norm_epsilon"],
        # Not the size of a head, but there is no rope.
        "rope.dimension_count": config["hidden_size"] // config["num_attention_heads"], "rope.scaling.finetuned": False}
    if "E" not in pattern:
        return keys
    return keys | deepseek_expert_keys(config) | {
        "expert_shared_feed_forward_length": config["moe_shared_expert_intermediate_size"]}


def _nemotron_tensors(weights: Weights, config: Config) -> Weights:
    named = {name.replace("backbone.layers.", "model.layers.").replace(".mixer.experts.", ".mlp.experts."): value
             for name, value in weights.items()}
    return stack_experts(_stored(named, config["n_groups"]), config)


NEMOTRON = Arch(
    _nemotron, change=_nemotron_tensors, permutes=True,
    names={f"mixer.{name}": other for name, other in MODULES.items()} | {
        "norm": "attn_norm", "mixer.q_proj": "attn_q", "mixer.k_proj": "attn_k", "mixer.v_proj": "attn_v",
        "mixer.o_proj": "attn_output", "mixer.up_proj": "ffn_up", "mixer.down_proj": "ffn_down", "mixer.gate": "ffn_gate_inp",
        "mixer.shared_experts.up_proj": "ffn_up_shexp", "mixer.shared_experts.down_proj": "ffn_down_shexp"},
    top={"backbone.embeddings": "token_embd", "backbone.norm_f": "output_norm"},
    tensors={f"mixer.{name}": other for name, other in VECTORS.items()} | {
        "mixer.gate.e_score_correction_bias": "exp_probs_b.bias"})
ARCHS = {
    "granite": Arch(_granite, change=_granite_tensors, permutes=True),
    "granitehybrid": Arch(
        _granite, change=_granite_tensors, permutes=True,
        names={f"mamba.{name}": other for name, other in MODULES.items()} | DEEPSEEK_SHARED | {
            "mlp.switch_mlp.router.layer": "ffn_gate_inp"},
        tensors={f"mamba.{name}": other for name, other in VECTORS.items()}),
    "nemotron_h": NEMOTRON,
    "nemotron_h_moe": NEMOTRON,
}
