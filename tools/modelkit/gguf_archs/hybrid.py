"""Architectures with a recurrent state: gated delta rules and short convolutions."""

import numpy as np

from ..recipes.lfm2 import ffn_width
from . import GATING, SHARED_EXPERT, Arch, Config, Weights, joined, qwen_expert_keys, stack_experts


def _delta(config: Config) -> dict:
    rope = config.get("rope_parameters") or config
    keys = {"ssm.conv_kernel": config["linear_conv_kernel_dim"], "ssm.state_size": config["linear_key_head_dim"],
            "ssm.group_count": config["linear_num_key_heads"], "ssm.time_step_rank": config["linear_num_value_heads"],
            "ssm.inner_size": config["linear_value_head_dim"] * config["linear_num_value_heads"],
            "full_attention_interval": config["full_attention_interval"],
            "rope.dimension_count": int(config["head_dim"] * rope["partial_rotary_factor"])}
    if "mrope_section" in rope:
        keys["rope.dimension_sections"] = [*rope["mrope_section"], 0]
    return keys | (qwen_expert_keys(config) if config.get("num_experts") else {})


def _tiled(values: np.ndarray, axis: int, config: Config, size: int) -> np.ndarray:
    """Reorders value heads of `size` entries, which are grouped by key head: the first of each group, then the second."""
    keys, heads, shape = config["linear_num_key_heads"], config["linear_num_value_heads"], values.shape
    grouped = values.reshape(*shape[:axis], keys, heads // keys, size, *shape[axis + 1:])
    return grouped.swapaxes(axis, axis + 1).reshape(shape)


def _stored(weights: Weights, config: Config) -> Weights:
    """-exp(A_log), convolutions and matrices of one row without their axis of one, and no multi-token prediction."""
    found = {}
    for name, value in stack_experts(weights, config).items():
        if name.startswith("mtp."):
            continue
        if name.endswith(".A_log"):
            value = -np.exp(value)
        if name.endswith(".conv1d.weight"):
            value = value.reshape(len(value), -1)
        if name.endswith(".shared_expert_gate.weight"):
            value = value.reshape(-1)
        found[name] = value
    return found


def _qwen35(weights: Weights, config: Config) -> Weights:
    size, keys = config["linear_value_head_dim"], 2 * config["linear_num_key_heads"] * config["linear_key_head_dim"]
    found = _stored(weights, config)
    for name, value in found.items():
        leaf = name.partition(".linear_attn.")[2].removesuffix(".weight")
        if leaf in ("in_proj_qkv", "conv1d"):
            found[name] = joined([value[:keys], _tiled(value[keys:], 0, config, size)])
        elif leaf in ("in_proj_z", "in_proj_a", "in_proj_b", "A_log", "dt_bias"):
            found[name] = _tiled(value, 0, config, size if leaf == "in_proj_z" else 1)
        elif leaf == "out_proj":
            found[name] = _tiled(value, 1, config, size)
    return found


def _qwen3next(weights: Weights, config: Config) -> Weights:
    """in_proj_qkvz has q, k, v and z of each key head together; the GGUF file has q, k, v of all heads, and z apart."""
    heads, k_size = config["linear_num_key_heads"], config["linear_key_head_dim"]
    v_size = config["linear_num_value_heads"] // heads * config["linear_value_head_dim"]
    found = _stored(weights, config)
    for name in [each for each in found if ".in_proj_qkvz." in each]:
        rows = found.pop(name)
        by_head = np.split(rows.reshape(heads, -1, rows.shape[1]), np.cumsum([k_size, k_size, v_size]), axis=1)
        q, k, v, z = (part.reshape(-1, rows.shape[1]) for part in by_head)
        found[name.replace("in_proj_qkvz", "in_proj_qkv")] = joined([q, k, v])
        found[name.replace("in_proj_qkvz", "in_proj_z")] = z
    return found


DELTA = {"post_attention_layernorm": "post_attention_norm", "linear_attn.in_proj_qkv": "attn_qkv",
         "linear_attn.in_proj_z": "attn_gate", "linear_attn.in_proj_a": "ssm_alpha", "linear_attn.in_proj_b": "ssm_beta",
         "linear_attn.in_proj_ba": "ssm_ba", "linear_attn.conv1d": "ssm_conv1d", "linear_attn.norm": "ssm_norm",
         "linear_attn.out_proj": "ssm_out"} | SHARED_EXPERT
VECTORS = {"linear_attn.A_log": "ssm_a", "linear_attn.dt_bias": "ssm_dt.bias"}


def _lfm2(config: Config) -> dict:
    attends = config["full_attn_idxs"]
    return {"shortconv.l_cache": config["conv_L_cache"], "feed_forward_length": ffn_width(config),
            "attention.head_count_kv": [config["num_key_value_heads"] if layer in attends else 0
                                        for layer in range(config["num_hidden_layers"])]}


def _without_axis(weights: Weights, config: Config) -> Weights:
    return {name: value.reshape(len(value), -1) if name.endswith(".conv.conv.weight") else value
            for name, value in weights.items()}


def _lfm2moe(config: Config) -> dict:
    kinds, heads = config["layer_types"], config["num_key_value_heads"]
    return {"shortconv.l_cache": config["conv_L_cache"], "expert_count": config["num_experts"],
            "expert_used_count": config["num_experts_per_tok"], "expert_feed_forward_length": config["moe_intermediate_size"],
            "leading_dense_block_count": config["num_dense_layers"], "expert_gating_func": GATING["sigmoid"],
            "attention.head_count_kv": [heads if kind == "full_attention" else 0 for kind in kinds]}


def _lfm2moe_tensors(weights: Weights, config: Config) -> Weights:
    found = {}
    for name, value in _without_axis(weights, config).items():
        if ".feed_forward.experts." in name:
            name = name.replace(".feed_forward.experts.", ".mlp.experts.")
            for theirs, ours in (("w1", "gate_proj"), ("w3", "up_proj"), ("w2", "down_proj")):
                name = name.replace(f".{theirs}.", f".{ours}.")
        found[name] = value
    return stack_experts(found, config)


LFM2_TOP = {"model.embedding_norm": "token_embd_norm"}
LFM2 = {"operator_norm": "attn_norm", "ffn_norm": "ffn_norm", "self_attn.out_proj": "attn_output",
        "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm", "conv.in_proj": "shortconv.in_proj",
        "conv.conv": "shortconv.conv", "conv.out_proj": "shortconv.out_proj", "feed_forward.w1": "ffn_gate",
        "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down", "feed_forward.gate": "ffn_gate_inp"}
ARCHS = {
    "qwen35": Arch(_delta, names=DELTA, tensors=VECTORS, change=_qwen35, adds_one=True),
    "qwen35moe": Arch(_delta, names=DELTA, tensors=VECTORS, change=_qwen35, adds_one=True),
    "qwen3next": Arch(_delta, names=DELTA, tensors=VECTORS, change=_qwen3next, adds_one=True),
    "lfm2": Arch(_lfm2, change=_without_axis, top=LFM2_TOP, names=LFM2),
    "lfm2moe": Arch(_lfm2moe, change=_lfm2moe_tensors, top=LFM2_TOP, names=LFM2,
                    tensors={"feed_forward.expert_bias": "exp_probs_b.bias"}),
}
