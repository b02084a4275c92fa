"""gpt-oss: attention sinks, a window in every other layer, biases everywhere, and experts in mxfp4 blocks."""

import math

from . import CustomFamily
from ..tensor import TensorList

LAYERS = 4
TINY = {
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "hidden_size": 96,
    "num_hidden_layers": LAYERS,
    "intermediate_size": 96,
    "num_attention_heads": 8,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "num_local_experts": 16,
    "num_experts_per_tok": 4,
    "experts_per_token": 4,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
    "initial_context_length": 64,
    "layer_types": ["sliding_attention", "full_attention"] * (LAYERS // 2),
    "sliding_window": 128,
    "attention_bias": True,
    "rms_norm_eps": 1e-5,
    "rope_theta": 150000,
    "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                     "original_max_position_embeddings": 4096, "truncate": False},
    "hidden_act": "silu",
    "swiglu_limit": 7.0,
    "tie_word_embeddings": False,
    "output_router_logits": False,
    "router_aux_loss_coef": 0.9,
}
PUBLISHED = TINY | {"quantization_config": {
    "quant_method": "mxfp4",
    "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"],
}}
ROUNDED = TINY | {"rope_scaling": {k: v for k, v in TINY["rope_scaling"].items() if k != "truncate"}}
SIZE_20B = {
    "hidden_size": 2880, "num_hidden_layers": 24, "intermediate_size": 2880, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 64, "num_local_experts": 32, "vocab_size": 201088,
    "max_position_embeddings": 131072, "initial_context_length": 4096,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
}


def _experts(found: TensorList, at: str, config: dict, published: bool) -> None:
    count, hidden, inner = config["num_local_experts"], config["hidden_size"], config["intermediate_size"]
    if published:
        # Gate and up rows alternate. The values are large enough to reach the activation's limit.
        found.mxfp4_blocks(f"{at}.gate_up_proj", (count, 2 * inner, hidden), 2 / math.sqrt(hidden))
        found.values(f"{at}.gate_up_proj_bias", (count, 2 * inner), std=2.0)
        found.mxfp4_blocks(f"{at}.down_proj", (count, hidden, inner), 0.1 / math.sqrt(inner))
        found.values(f"{at}.down_proj_bias", (count, hidden), std=0.1)
        return
    for name, rows, columns, gain in (("gate_proj", inner, hidden, 2), ("up_proj", inner, hidden, 2),
                                      ("down_proj", hidden, inner, 0.1)):
        found.values(f"{at}.{name}.weight", (count, rows, columns), std=gain / math.sqrt(columns))
        found.values(f"{at}.{name}.bias", (count, rows), std=gain)


def tensors(config: dict, published: bool = False) -> TensorList:
    found, hidden = TensorList(), config["hidden_size"]
    q, kv = (config[f"num_{each}_heads"] * config["head_dim"] for each in ("attention", "key_value"))
    found.linear("model.embed_tokens", config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        found.norm(f"{at}.input_layernorm", hidden)
        found.linear(f"{at}.self_attn.q_proj", q, hidden, 0.5)
        found.linear(f"{at}.self_attn.k_proj", kv, hidden, 0.5)
        found.linear(f"{at}.self_attn.v_proj", kv, hidden, 0.5)
        found.linear(f"{at}.self_attn.o_proj", hidden, q, 0.1, gain=0.2)
        found.values(f"{at}.self_attn.sinks", (config["num_attention_heads"],))
        found.norm(f"{at}.post_attention_layernorm", hidden)
        found.linear(f"{at}.mlp.router", config["num_local_experts"], hidden, 0.5)
        _experts(found, f"{at}.mlp.experts", config, published)
    found.norm("model.norm", hidden)
    found.linear("lm_head", config["vocab_size"], hidden)
    return found


def published_tensors(config: dict) -> TensorList:
    return tensors(config, published=True)


FAMILIES = {
    "gpt_oss": CustomFamily("gpt-oss: as published, experts in mxfp4", PUBLISHED, published_tensors,
                            {"gpt-oss-20b": SIZE_20B}),
    "gpt_oss-mlx": CustomFamily("gpt-oss: as mlx-lm converts it, experts stacked", ROUNDED, tensors),
}
