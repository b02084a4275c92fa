"""Qwen3.5 and Qwen3-Next: three gated delta rule layers for each gated attention layer; dense or with experts."""

import math

from ..tensor import TensorList
from . import CustomFamily, text_config

ROPE = {"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25,
        "mrope_interleaved": True, "mrope_section": [11, 11, 10]}


def layer_types(layers: int) -> list[str]:
    return ["full_attention" if (i + 1) % 4 == 0 else "linear_attention" for i in range(layers)]


def qwen3_5(layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, value_heads: int, tied: bool, **more) -> dict:
    """Returns the text section of a Qwen3.5 config."""
    return {
        "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text", "hidden_size": hidden,
        "num_hidden_layers": layers, "intermediate_size": ffn, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "head_dim": 256, "attention_bias": False, "attn_output_gate": True,
        "linear_num_value_heads": value_heads, "linear_num_key_heads": 16, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "full_attention_interval": 4,
        "layer_types": layer_types(layers), "mamba_ssm_dtype": "float32", "output_gate_type": "swish",
        "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False, "rms_norm_eps": 1e-6, "hidden_act": "silu",
        "vocab_size": 248320, "max_position_embeddings": 262144, "tie_word_embeddings": tied,
        "rope_parameters": ROPE, "partial_rotary_factor": 0.25,
    } | more


TINY_SIZES = {
    "vocab_size": 512, "max_position_embeddings": 2048, "head_dim": 64, "linear_num_key_heads": 2,
    "linear_key_head_dim": 32, "linear_value_head_dim": 48,
    "rope_parameters": ROPE | {"mrope_section": [3, 3, 2]},
}
TINY = qwen3_5(8, 128, 4, 2, 192, 6, True, **TINY_SIZES)
# The shapes of the published models, as differences from tiny.
SHAPES = {
    "qwen3.5-0.8b": qwen3_5(24, 1024, 8, 2, 3584, 16, True),
    "qwen3.5-2b": qwen3_5(24, 2048, 8, 2, 6144, 16, True),
    "qwen3.5-4b": qwen3_5(32, 2560, 16, 4, 9216, 32, True),
    "qwen3.5-9b": qwen3_5(32, 4096, 16, 4, 12288, 32, False),
    "qwen3.5-27b": qwen3_5(64, 5120, 24, 4, 17408, 48, False),
}
MOE = {"architectures": ["Qwen3_5MoeForCausalLM"], "model_type": "qwen3_5_moe_text", "intermediate_size": None,
       "num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 64, "shared_expert_intermediate_size": 96,
       "output_router_logits": False, "router_aux_loss_coef": 0.001}
QWEN3_5_MOE = {k: v for k, v in (TINY | MOE | {"tie_word_embeddings": False}).items() if v is not None}
MOE_SHAPES = {
    "qwen3.5-35b-a3b": qwen3_5(40, 2048, 16, 2, 0, 32, False) | MOE | {
        "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512},
}
QWEN3_NEXT = {
    "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "hidden_size": 128, "num_hidden_layers": 8,
    "intermediate_size": 192, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
    "attention_bias": False, "linear_num_value_heads": 6, "linear_num_key_heads": 2, "linear_key_head_dim": 32,
    "linear_value_head_dim": 48, "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "rms_norm_eps": 1e-6,
    "hidden_act": "silu", "vocab_size": 512, "max_position_embeddings": 2048, "tie_word_embeddings": False,
    "rope_theta": 10000000.0, "rope_scaling": None, "partial_rotary_factor": 0.25, "num_experts": 0,
    "num_experts_per_tok": 10, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True,
    "moe_intermediate_size": 64, "shared_expert_intermediate_size": 96,
}
QWEN3_NEXT_MOE = QWEN3_NEXT | {"num_experts": 16, "num_experts_per_tok": 4, "mlp_only_layers": [1]}


def _delta(found: TensorList, at: str, config: dict, turned: bool) -> None:
    hidden, taps = config["hidden_size"], config["linear_conv_kernel_dim"]
    key_heads, heads = config["linear_num_key_heads"], config["linear_num_value_heads"]
    keys, values = key_heads * config["linear_key_head_dim"], heads * config["linear_value_head_dim"]
    channels = 2 * keys + values
    if config["model_type"] == "qwen3_next":
        found.linear(f"{at}.in_proj_qkvz", channels + values, hidden)
        found.linear(f"{at}.in_proj_ba", 2 * heads, hidden)
    else:
        found.linear(f"{at}.in_proj_qkv", channels, hidden)
        found.linear(f"{at}.in_proj_z", values, hidden)
        found.linear(f"{at}.in_proj_b", heads, hidden)
        found.linear(f"{at}.in_proj_a", heads, hidden)
    found.values(f"{at}.conv1d.weight", (channels, taps, 1) if turned else (channels, 1, taps), 0.0, 1 / math.sqrt(taps))
    # Some heads forget within a few tokens, others remember the whole prompt.
    found.values(f"{at}.A_log", (heads,), -1.0, 1.5)
    found.values(f"{at}.dt_bias", (heads,), -2.0, 1.0)
    found.norm(f"{at}.norm", config["linear_value_head_dim"])
    found.linear(f"{at}.out_proj", hidden, values, gain=0.2)


def _attention(found: TensorList, at: str, config: dict, norm_mean: float) -> None:
    hidden, head_dim = config["hidden_size"], config["head_dim"]
    q, kv = config["num_attention_heads"] * head_dim, config["num_key_value_heads"] * head_dim
    bias = 0.5 if config["attention_bias"] else 0.0
    found.linear(f"{at}.q_proj", 2 * q, hidden, bias)
    found.linear(f"{at}.k_proj", kv, hidden, bias)
    found.linear(f"{at}.v_proj", kv, hidden, bias)
    found.norm(f"{at}.q_norm", head_dim, norm_mean)
    found.norm(f"{at}.k_norm", head_dim, norm_mean)
    found.linear(f"{at}.o_proj", hidden, q, bias, 0.2)


def _experts(found: TensorList, at: str, config: dict, turned: bool) -> None:
    hidden, inner, count = config["hidden_size"], config["moe_intermediate_size"], config["num_experts"]
    found.linear(f"{at}.gate", count, hidden)
    if turned or config["model_type"] == "qwen3_next":
        found.experts(at, count, hidden, inner, turned)
    else:
        found.values(f"{at}.experts.gate_up_proj", (count, 2 * inner, hidden), 0.0, 1 / math.sqrt(hidden))
        found.values(f"{at}.experts.down_proj", (count, hidden, inner), 0.0, 0.2 / math.sqrt(inner))
    found.mlp(f"{at}.shared_expert", hidden, config["shared_expert_intermediate_size"])
    found.linear(f"{at}.shared_expert_gate", 1, hidden)


def _tensors(whole: dict, prefix: str, head: str, turned: bool) -> TensorList:
    """`turned`: as mlx-lm's converter writes them, with one added to the norms and the convolutions transposed."""
    config = text_config(whole)
    found = TensorList()
    norm_mean = 1.0 if turned else 0.0
    hidden, interval = config["hidden_size"], config["full_attention_interval"]
    found.linear(f"{prefix}.embed_tokens", config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"{prefix}.layers.{layer}"
        found.norm(f"{at}.input_layernorm", hidden, norm_mean)
        if (layer + 1) % interval == 0:
            _attention(found, f"{at}.self_attn", config, norm_mean)
        else:
            _delta(found, f"{at}.linear_attn", config, turned)
        found.norm(f"{at}.post_attention_layernorm", hidden, norm_mean)
        if config.get("num_experts") and layer not in config.get("mlp_only_layers", []):
            _experts(found, f"{at}.mlp", config, turned)
        else:
            found.mlp(f"{at}.mlp", hidden, config["intermediate_size"])
    found.norm(f"{prefix}.norm", hidden, norm_mean)
    if not config["tie_word_embeddings"]:
        found.linear(head, config["vocab_size"], hidden)
    if "vision_config" in whole:
        found.linear("model.visual.merger.linear_fc1" if prefix.startswith("model") else "vision_tower.merger.linear_fc1",
                     64, 64)
    if config.get("mtp_num_hidden_layers") and not turned:
        found.linear("mtp.fc", hidden, 2 * hidden)
    return found


def _tensors_and_mtp(config: dict) -> TensorList:
    """A text model with all tensors of its multi-token prediction layer."""
    found, hidden = _tensors(config, "model", "lm_head", False), config["hidden_size"]
    for name in ("mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.norm", "mtp.layers.0.input_layernorm",
                 "mtp.layers.0.post_attention_layernorm"):
        found.norm(name, hidden, 0.0)
    _attention(found, "mtp.layers.0.self_attn", config, 0.0)
    found.mlp("mtp.layers.0.mlp", hidden, config["intermediate_size"])
    return found


def _wrapper(text: dict) -> dict:
    kind = text["model_type"].removesuffix("_text")
    return {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": kind, "text_config": text,
            "vision_config": {"model_type": "qwen3_5", "depth": 1, "hidden_size": 64}, "image_token_id": 3,
            "tie_word_embeddings": text["tie_word_embeddings"]}


FAMILIES = {
    "qwen3.5": CustomFamily(
        "Qwen3.5: gated delta rule and gated attention, with a vision tower that is ignored",
        _wrapper(TINY), lambda c: _tensors(c, "model.language_model", "lm_head", False), SHAPES),
    "qwen3.5-text": CustomFamily(
        "Qwen3.5 without its vision tower, output not tied, biases on attention",
        TINY | {"tie_word_embeddings": False, "attention_bias": True},
        lambda c: _tensors(c, "model", "lm_head", False)),
    "qwen3.5-mtp": CustomFamily("Qwen3.5 with its multi-token prediction layer", TINY, _tensors_and_mtp),
    "qwen3.5-mlx": CustomFamily(
        "Qwen3.5 as mlx-lm converts it: one added to the norms, convolutions transposed",
        _wrapper(TINY | {"tie_word_embeddings": False}),
        lambda c: _tensors(c, "language_model.model", "language_model.lm_head", True)),
    "qwen3.5-moe": CustomFamily(
        "Qwen3.5 with experts, including a gated shared expert, as published", _wrapper(QWEN3_5_MOE),
        lambda c: _tensors(c, "model.language_model", "lm_head", False), MOE_SHAPES),
    "qwen3.5-moe-text": CustomFamily(
        "Qwen3.5 with experts, without its vision tower", QWEN3_5_MOE,
        lambda c: _tensors(c, "model", "lm_head", False)),
    "qwen3.5-moe-mlx": CustomFamily(
        "Qwen3.5 with experts, as mlx-lm converts it", _wrapper(QWEN3_5_MOE),
        lambda c: _tensors(c, "language_model.model", "language_model.lm_head", True)),
    "qwen3-next": CustomFamily(
        "Qwen3-Next: projections merged by key head, experts", QWEN3_NEXT_MOE,
        lambda c: _tensors(c, "model", "lm_head", False)),
    "qwen3-next-dense-mlx": CustomFamily(
        "Qwen3-Next without experts, as mlx-lm converts it: projections joined by key head",
        QWEN3_NEXT, lambda c: _tensors(c, "model", "lm_head", True)),
}
