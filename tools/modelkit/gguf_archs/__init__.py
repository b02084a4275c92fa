"""The GGUF form of each architecture, by the rules of llama.cpp's converter: one entry per architecture.

Independent of Octavo's tables (src/models/gguf), which the tests compare with it."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .. import gguf_names

Weights = dict[str, np.ndarray]
Config = dict

BLOCK = gguf_names.BLOCK | {
    "mlp.gate": "ffn_gate_inp", "mlp.switch_mlp.gate_proj": "ffn_gate_exps", "mlp.switch_mlp.up_proj": "ffn_up_exps",
    "mlp.switch_mlp.down_proj": "ffn_down_exps"}


EPSILONS = ("rms_norm_eps", "norm_eps", "layer_norm_epsilon")


def same(weights: Weights, config: Config) -> Weights:
    return weights


@dataclass(frozen=True)
class Arch:
    keys: Callable[[Config], dict]  # metadata keys without "<architecture>.", in addition to common_keys
    names: dict[str, str] = field(default_factory=dict)  # modules of a layer, HF's first
    top: dict[str, str] = field(default_factory=dict)  # modules outside the layers
    tensors: dict[str, str] = field(default_factory=dict)  # whole names of tensors in a layer
    change: Callable[[Weights, Config], Weights] = same  # runs on HF's names
    adds_one: bool = False  # to the weights of norms
    permutes: bool = False
    extra: Callable[[Config], Weights] = lambda config: {}  # tensors without a counterpart, with GGUF names


def common_keys(config: Config) -> dict:
    keys = {
        "block_count": config["num_hidden_layers"], "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"], "attention.head_count": config["num_attention_heads"],
        "attention.layer_norm_rms_epsilon": float(next(config[key] for key in EPSILONS if key in config)),
        "vocab_size": config["vocab_size"]}
    for key, name in (("feed_forward_length", "intermediate_size"), ("attention.head_count_kv", "num_key_value_heads"),
                      ("attention.key_length", "head_dim"), ("attention.value_length", "head_dim")):
        if config.get(name):
            keys[key] = config[name]
    return keys | rope_keys(config)


def rope_keys(config: Config) -> dict:
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    keys = {}
    if theta := rope.get("rope_theta") or config.get("rope_theta"):
        keys["rope.freq_base"] = float(theta)
    kind = rope.get("rope_type") or rope.get("type")
    if kind in ("linear", "yarn"):
        keys |= {"rope.scaling.type": kind, "rope.scaling.factor": float(rope["factor"])}
    if kind == "yarn":
        keys["rope.scaling.original_context_length"] = rope["original_max_position_embeddings"]
        for key, name in (("yarn_beta_fast", "beta_fast"), ("yarn_beta_slow", "beta_slow"), ("yarn_attn_factor", "attention_factor")):
            if name in rope:
                keys[f"rope.scaling.{key}"] = float(rope[name])
    return keys


def llama3_rope(config: Config) -> Weights:
    scaling = config.get("rope_scaling") or {}
    if scaling.get("rope_type") != "llama3":
        return {}
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return {"rope_freqs.weight": gguf_names.llama3_factors(scaling, config["rope_theta"], head)}


def long_rope(config: Config) -> Weights:
    scaling = config.get("rope_scaling") or {}
    return {f"rope_factors_{each}.weight": np.array(scaling[f"{each}_factor"], np.float32)
            for each in ("long", "short") if f"{each}_factor" in scaling}


def is_shape(value: np.ndarray) -> bool:
    """Whether the array is one element broadcast to a shape: tensors of real models are never in memory."""
    return value.size > 1 and not any(value.strides)


def joined(parts: list[np.ndarray]) -> np.ndarray:
    if not is_shape(parts[0]):
        return np.concatenate(parts)
    return np.broadcast_to(parts[0].flat[0], (sum(map(len, parts)), *parts[0].shape[1:]))


def stacked(parts: list[np.ndarray]) -> np.ndarray:
    return np.broadcast_to(parts[0].flat[0], (len(parts), *parts[0].shape)) if is_shape(parts[0]) else np.stack(parts)


def stack_experts(weights: Weights, config: Config) -> Weights:
    """One tensor per matrix of all experts, from one module per expert or from fused gate and up matrices."""
    found: Weights = {}
    parts: dict[str, dict[int, np.ndarray]] = {}  # by expert
    for name, value in weights.items():
        before, between, after = name.partition(".mlp.experts.")
        if not between:
            found[name] = value
        elif after == "gate_up_proj":
            gate, up = np.split(value, 2, axis=1)
            found |= {f"{before}.mlp.switch_mlp.gate_proj.weight": gate, f"{before}.mlp.switch_mlp.up_proj.weight": up}
        elif after == "down_proj":
            found[f"{before}.mlp.switch_mlp.down_proj.weight"] = value
        else:
            expert, _, module = after.partition(".")
            parts.setdefault(f"{before}.mlp.switch_mlp.{module}", {})[int(expert)] = value
    return found | {name: stacked([each[i] for i in range(len(each))]) for name, each in parts.items()}


def qwen_expert_keys(config: Config) -> dict:
    keys = {"expert_count": config["num_experts"], "expert_used_count": config["num_experts_per_tok"],
            "expert_feed_forward_length": config["moe_intermediate_size"]}
    if shared := config.get("shared_expert_intermediate_size"):
        keys["expert_shared_feed_forward_length"] = shared
    return keys


def deepseek_expert_keys(config: Config) -> dict:
    return {"expert_count": config["n_routed_experts"], "expert_used_count": config["num_experts_per_tok"],
            "expert_shared_count": config["n_shared_experts"], "expert_feed_forward_length": config["moe_intermediate_size"],
            "expert_group_count": config["n_group"], "expert_group_used_count": config["topk_group"],
            "expert_weights_scale": float(config["routed_scaling_factor"]), "expert_weights_norm": config["norm_topk_prob"]}


GATING = {"softmax": 1, "sigmoid": 2}
DEEPSEEK_SHARED = {f"mlp.shared_experts.{each}_proj": f"ffn_{each}_shexp" for each in ("gate", "up", "down")}
SHARED_EXPERT = {"mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
                 "mlp.shared_expert.down_proj": "ffn_down_shexp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp"}
SANDWICH = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
            "post_feedforward_layernorm": "post_ffw_norm"}


def window_pattern(config: Config) -> list[bool]:
    return [kind == "sliding_attention" for kind in config["layer_types"]]
