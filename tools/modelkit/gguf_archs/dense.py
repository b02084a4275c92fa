"""Architectures that are Llama with other norms, scales, merged matrices or windows."""

import math

from . import SANDWICH, Arch, Config, llama3_rope, long_rope, qwen_expert_keys, stack_experts, window_pattern


def no_keys(config: Config) -> dict:
    return {}


def _mistral3(config: Config) -> dict:
    rope = config["rope_parameters"]
    return {"attention.temperature_scale": rope["llama_4_scaling_beta"],
            "rope.scaling.yarn_log_multiplier": rope["mscale_all_dim"], "rope.dimension_count": config["head_dim"]}


def _gemma2(config: Config) -> dict:
    return {"attention.sliding_window": config["sliding_window"], "attn_logit_softcapping": config["attn_logit_softcapping"],
            "final_logit_softcapping": config["final_logit_softcapping"]}


def _gemma3(config: Config) -> dict:
    return {"attention.sliding_window": config["sliding_window"], "rope.freq_base_swa": config["rope_local_base_freq"]}


def _phi3(config: Config) -> dict:
    head = config["hidden_size"] // config["num_attention_heads"]
    keys = {"rope.dimension_count": int(head * config["partial_rotary_factor"]),
            "rope.scaling.original_context_length": config["original_max_position_embeddings"],
            "attention.sliding_window": config["sliding_window"] or 0}
    if config["rope_scaling"]:
        original = config["original_max_position_embeddings"]
        keys["rope.scaling.type"] = "longrope"
        keys["rope.scaling.attn_factor"] = math.sqrt(
            1 + math.log(config["max_position_embeddings"] / original) / math.log(original))
    return keys


def _glm4(config: Config) -> dict:
    return {"rope.dimension_count": int(config["head_dim"] * config["partial_rotary_factor"])}


def _olmo2(config: Config) -> dict:
    if not config.get("sliding_window"):
        return {}
    return {"attention.sliding_window": config["sliding_window"], "attention.sliding_window_pattern": window_pattern(config)}


def _sections(config: Config) -> dict:
    """Sections take turns, so each has every third pair. llama.cpp does not rotate a pair that its section does not include."""
    pairs = config["head_dim"] // 2
    return {"rope.dimension_sections": [*(len(range(i, pairs, 3)) for i in range(3)), 0], "n_deepstack_layers": 0}


POST_NORMS = {each: SANDWICH[each] for each in ("post_attention_layernorm", "post_feedforward_layernorm")}
ARCHS = {
    "llama": Arch(no_keys, permutes=True, extra=llama3_rope),
    "smollm3": Arch(no_keys, permutes=True),
    "qwen2": Arch(no_keys),
    "qwen3": Arch(no_keys),
    "qwen3moe": Arch(qwen_expert_keys, change=stack_experts),
    "qwen3vl": Arch(_sections),
    "qwen3vlmoe": Arch(lambda config: qwen_expert_keys(config) | _sections(config), change=stack_experts),
    "mistral3": Arch(_mistral3, permutes=True),
    "gemma2": Arch(_gemma2, names=SANDWICH, adds_one=True),
    "gemma3": Arch(_gemma3, names=SANDWICH, adds_one=True),
    "phi3": Arch(_phi3, names={"self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"}, extra=long_rope),
    "glm4": Arch(_glm4, names={"post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm",
                               "mlp.gate_up_proj": "ffn_up"}),
    "olmo2": Arch(_olmo2, names=POST_NORMS),
}
