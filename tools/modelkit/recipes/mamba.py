"""Granite 4 and Nemotron-H: Mamba-2 layers, with attention in some layers."""

import math

from . import CustomFamily
from ..tensor import TensorList

GRANITE = {
    "architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid", "hidden_size": 128,
    "intermediate_size": 64, "shared_intermediate_size": 96, "num_hidden_layers": 5, "num_attention_heads": 4,
    "num_key_value_heads": 2, "num_local_experts": 12, "num_experts_per_tok": 4,
    "layer_types": ["mamba", "mamba", "attention", "mamba", "mamba"], "mamba_n_heads": 8, "mamba_d_head": 32,
    "mamba_n_groups": 1, "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 256,
    "mamba_conv_bias": True, "mamba_proj_bias": False, "position_embedding_type": "nope", "attention_bias": False,
    "attention_multiplier": 0.0625, "embedding_multiplier": 3, "logits_scaling": 1.5, "residual_multiplier": 0.22,
    "hidden_act": "silu", "normalization_function": "rmsnorm", "init_method": "mup", "rms_norm_eps": 1e-5,
    "vocab_size": 512, "max_position_embeddings": 2048, "rope_theta": 10000, "rope_scaling": None,
    "tie_word_embeddings": True, "output_router_logits": False, "router_aux_loss_coef": 0.01,
}
H_TINY = {
    "hidden_size": 1536, "intermediate_size": 512, "shared_intermediate_size": 1024, "num_hidden_layers": 40,
    "num_attention_heads": 12, "num_key_value_heads": 4, "num_local_experts": 64, "num_experts_per_tok": 6,
    "layer_types": ["attention" if layer in (5, 15, 25, 35) else "mamba" for layer in range(40)], "mamba_n_heads": 48,
    "mamba_d_head": 64, "mamba_d_state": 128, "attention_multiplier": 0.0078125, "embedding_multiplier": 12,
    "logits_scaling": 6, "vocab_size": 100352,
    "max_position_embeddings": 131072,
}
DENSE = GRANITE | {
    "num_local_experts": 0, "num_experts_per_tok": 0, "intermediate_size": 96, "mamba_n_groups": 2,
    "position_embedding_type": "rope", "tie_word_embeddings": False, "attention_bias": True, "mamba_proj_bias": True,
}
NEMOTRON = {
    "architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", "hidden_size": 128,
    "hybrid_override_pattern": "MEM-*EM*", "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 2,
    "head_dim": 32, "intermediate_size": 224, "mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 64,
    "n_groups": 4, "conv_kernel": 4, "use_conv_bias": True, "use_bias": False, "mamba_proj_bias": False,
    "mamba_hidden_act": "silu", "mlp_hidden_act": "relu2", "mlp_bias": False, "attention_bias": False, "expand": 2,
    "chunk_size": 128, "time_step_limit": [0.0, math.inf], "time_step_min": 0.001, "time_step_max": 0.1,
    "time_step_floor": 0.0001, "n_routed_experts": 16, "n_shared_experts": 1, "num_experts_per_tok": 4,
    "moe_intermediate_size": 96, "moe_shared_expert_intermediate_size": 160, "n_group": 1, "topk_group": 1,
    "norm_topk_prob": True, "routed_scaling_factor": 2.5, "layer_norm_epsilon": 1e-5, "vocab_size": 512,
    "max_position_embeddings": 2048, "tie_word_embeddings": False, "residual_in_fp32": False,
    "rescale_prenorm_residual": True, "num_logits_to_keep": 1, "use_mamba_kernels": True,
}
NANO_3 = {
    "hidden_size": 2688, "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "num_hidden_layers": 52, "num_attention_heads": 32, "head_dim": 128, "intermediate_size": 1856,
    "mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "n_routed_experts": 128,
    "num_experts_per_tok": 6, "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712,
    "vocab_size": 131072, "max_position_embeddings": 262144,
}
NANO_9B = {
    "hidden_size": 4480, "hybrid_override_pattern": "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
    "num_hidden_layers": 56, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 15680, "mamba_num_heads": 128, "mamba_head_dim": 80, "ssm_state_size": 128, "n_groups": 8,
    "vocab_size": 131072, "max_position_embeddings": 131072,
}


def _mamba(found: TensorList, at: str, config: dict, sizes: tuple[int, int, int, int, int], bias: float, turned: bool) -> None:
    heads, head, groups, state, taps = sizes
    hidden, values = config["hidden_size"], heads * head
    channels = values + 2 * groups * state
    found.linear(f"{at}.in_proj", values + channels + heads, hidden, bias)
    found.values(f"{at}.conv1d.weight", (channels, taps, 1) if turned else (channels, 1, taps), std=0.5)
    found.values(f"{at}.conv1d.bias", (channels,), std=0.2)
    # Steps and decays of many lengths.
    found.values(f"{at}.A_log", (heads,), 0.5, 1.0)
    found.values(f"{at}.dt_bias", (heads,), -2.0, 1.0)
    found.values(f"{at}.D", (heads,), 1.0, 0.3)
    found.norm(f"{at}.norm", values)
    found.linear(f"{at}.out_proj", hidden, values, bias, 0.5)


def _attention(found: TensorList, at: str, hidden: int, q: int, kv: int, bias: float) -> None:
    found.linear(f"{at}.q_proj", q, hidden, bias)
    found.linear(f"{at}.k_proj", kv, hidden, bias)
    found.linear(f"{at}.v_proj", kv, hidden, bias)
    found.linear(f"{at}.o_proj", hidden, q, bias, 0.2)


def _granite_ffn(found: TensorList, at: str, config: dict, turned: bool) -> None:
    hidden, inner, shared = (config[key] for key in ("hidden_size", "intermediate_size", "shared_intermediate_size"))
    experts = config["num_local_experts"]
    if not experts and turned:
        found.mlp(f"{at}.mlp", hidden, shared)
        return
    found.linear(f"{at}.shared_mlp.input_linear", 2 * shared, hidden)
    found.linear(f"{at}.shared_mlp.output_linear", hidden, shared, gain=0.2)
    if not experts:
        return
    moe = f"{at}.block_sparse_moe"
    found.linear(f"{moe}.router.layer", experts, hidden)
    if turned:
        found.experts(moe, experts, hidden, inner, True)
    else:
        found.values(f"{moe}.input_linear.weight", (experts, 2 * inner, hidden), std=hidden ** -0.5)
        found.values(f"{moe}.output_linear.weight", (experts, hidden, inner), std=0.2 * inner ** -0.5)


def granite(config: dict, turned: bool = False) -> TensorList:
    """`turned`: as mlx-lm's converter writes them."""
    found, hidden = TensorList(), config["hidden_size"]
    head = hidden // config["num_attention_heads"]
    sizes = tuple(config[f"mamba_{key}"] for key in ("n_heads", "d_head", "n_groups", "d_state", "d_conv"))
    # Compensates the model's scale factors.
    gain = config["logits_scaling"] if config["tie_word_embeddings"] else 1 / config["embedding_multiplier"]
    found.linear("model.embed_tokens", config["vocab_size"], hidden, gain=gain)
    for layer, kind in enumerate(config["layer_types"]):
        at = f"model.layers.{layer}"
        found.norm(f"{at}.input_layernorm", hidden)
        if kind == "mamba":
            _mamba(found, f"{at}.mamba", config, sizes, 0.2 if config["mamba_proj_bias"] else 0.0, turned)
        else:
            _attention(found, f"{at}.self_attn", hidden, hidden, head * config["num_key_value_heads"],
                       0.5 if config["attention_bias"] else 0.0)
        found.norm(f"{at}.post_attention_layernorm", hidden)
        _granite_ffn(found, at, config, turned)
    found.norm("model.norm", hidden)
    if not config["tie_word_embeddings"]:
        found.linear("lm_head", config["vocab_size"], hidden, gain=config["logits_scaling"])
    return found


def _nemotron_experts(found: TensorList, at: str, config: dict, turned: bool) -> None:
    hidden, inner, count = config["hidden_size"], config["moe_intermediate_size"], config["n_routed_experts"]
    found.linear(f"{at}.gate", count, hidden)
    found.values(f"{at}.gate.e_score_correction_bias", (count,), std=0.1)
    if turned:
        found.values(f"{at}.switch_mlp.fc1.weight", (count, inner, hidden), std=hidden ** -0.5)
        found.values(f"{at}.switch_mlp.fc2.weight", (count, hidden, inner), std=0.1 * inner ** -0.5)
    else:
        for expert in range(count):
            found.linear(f"{at}.experts.{expert}.up_proj", inner, hidden)
            found.linear(f"{at}.experts.{expert}.down_proj", hidden, inner, gain=0.1)
    shared = config["moe_shared_expert_intermediate_size"]
    found.linear(f"{at}.shared_experts.up_proj", shared, hidden)
    found.linear(f"{at}.shared_experts.down_proj", hidden, shared, gain=0.2)


def nemotron(config: dict, turned: bool = False) -> TensorList:
    found, hidden = TensorList(), config["hidden_size"]
    sizes = tuple(config[key] for key in ("mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel"))
    found.linear("backbone.embeddings", config["vocab_size"], hidden)
    for layer, kind in enumerate(config["hybrid_override_pattern"]):
        at = f"backbone.layers.{layer}"
        found.norm(f"{at}.norm", hidden)
        if kind == "M":
            _mamba(found, f"{at}.mixer", config, sizes, 0.0, turned)
        elif kind == "*":
            _attention(found, f"{at}.mixer", hidden, config["num_attention_heads"] * config["head_dim"],
                       config["num_key_value_heads"] * config["head_dim"], 0.0)
        elif kind == "-":
            found.linear(f"{at}.mixer.up_proj", config["intermediate_size"], hidden)
            found.linear(f"{at}.mixer.down_proj", hidden, config["intermediate_size"], gain=0.2)
        else:
            _nemotron_experts(found, f"{at}.mixer", config, turned)
    found.norm("backbone.norm_f", hidden)
    found.linear("lm_head", config["vocab_size"], hidden)
    return found


FAMILIES = {
    "granitemoehybrid": CustomFamily(
        "Granite 4 hybrid: Mamba-2 and attention without rope, experts and a shared expert", GRANITE, granite,
        {"granite-4.0-h-tiny": H_TINY}),
    "granitemoehybrid-dense": CustomFamily(
        "Granite 4 hybrid without experts: biases, rope, an untied output", DENSE, granite),
    "granitemoehybrid-mlx": CustomFamily(
        "Granite 4 hybrid as mlx-lm converts it", GRANITE, lambda c: granite(c, turned=True)),
    "granitemoehybrid-dense-mlx": CustomFamily(
        "Granite 4 hybrid without experts, as mlx-lm converts it", DENSE, lambda c: granite(c, turned=True)),
    "nemotron_h": CustomFamily(
        "Nemotron-H: Mamba-2, attention, MLP and expert layers, as published", NEMOTRON, nemotron,
        {"nemotron-3-nano-30b-a3b": NANO_3, "nemotron-nano-9b-v2": NANO_9B}),
    "nemotron_h-mlx": CustomFamily("Nemotron-H as mlx-lm converts it", NEMOTRON, lambda c: nemotron(c, turned=True)),
}
