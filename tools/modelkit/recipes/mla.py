"""Multi-head latent attention: the tensors common to all its families, and MiniCPM3."""

from ..tensor import TensorList
from . import CustomFamily


def attention(found: TensorList, at: str, config: dict, v_dim: int, split: bool = False) -> None:
    """Adds self_attn of one layer, with biases according to attention_bias. `split`: as mlx-lm converts V3."""
    hidden, heads, q_rank, kv_rank = (
        config[key] for key in ("hidden_size", "num_attention_heads", "q_lora_rank", "kv_lora_rank"))
    nope, rope = config["qk_nope_head_dim"], config["qk_rope_head_dim"]
    bias = 0.5 if config.get("attention_bias") else 0.0
    if q_rank:
        found.linear(f"{at}.q_a_proj", q_rank, hidden, bias)
        found.norm(f"{at}.q_a_layernorm", q_rank)
        found.linear(f"{at}.q_b_proj", heads * (nope + rope), q_rank)
    else:
        found.linear(f"{at}.q_proj", heads * (nope + rope), hidden)
    found.linear(f"{at}.kv_a_proj_with_mqa", kv_rank + rope, hidden, bias)
    found.norm(f"{at}.kv_a_layernorm", kv_rank)
    if split:
        found.values(f"{at}.embed_q.weight", (heads, kv_rank, nope), std=kv_rank ** -0.5)
        found.values(f"{at}.unembed_out.weight", (heads, v_dim, kv_rank), std=kv_rank ** -0.5)
    else:
        found.linear(f"{at}.kv_b_proj", heads * (nope + v_dim), kv_rank)
    found.linear(f"{at}.o_proj", hidden, heads * v_dim, 0.2 if bias else 0.0, 0.2)


def _minicpm3(config: dict) -> TensorList:
    hidden = config["hidden_size"]
    found = TensorList()
    # Compensates the model's scale factors, so that logits keep a standard deviation of about one.
    found.linear("model.embed_tokens", config["vocab_size"], hidden, gain=1 / config["scale_emb"])
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        found.norm(f"{at}.input_layernorm", hidden)
        attention(found, f"{at}.self_attn", config, hidden // config["num_attention_heads"])
        found.norm(f"{at}.post_attention_layernorm", hidden)
        found.mlp(f"{at}.mlp", hidden, config["intermediate_size"])
    found.norm("model.norm", hidden)
    if not config["tie_word_embeddings"]:
        found.linear("lm_head", config["vocab_size"], hidden, gain=hidden / config["dim_model_base"])
    return found


def _longrope(pairs: int, original: int) -> dict:
    factors = [round(1.06 * 1.3 ** (i * 16 / pairs), 6) for i in range(pairs)]
    return {"type": "longrope", "long_factor": factors, "short_factor": factors,
            "original_max_position_embeddings": original}


FAMILIES = {
    "minicpm3": CustomFamily(
        "MiniCPM3: latent attention, scales on embeddings, layers and logits, longrope",
        tiny={
            "architectures": ["MiniCPM3ForCausalLM"], "model_type": "minicpm3", "hidden_size": 160,
            "intermediate_size": 400, "num_hidden_layers": 4, "num_attention_heads": 5, "num_key_value_heads": 5,
            "q_lora_rank": 48, "kv_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "scale_emb": 12,
            "scale_depth": 1.4, "dim_model_base": 16, "rms_norm_eps": 1e-5, "vocab_size": 512, "hidden_act": "silu",
            "max_position_embeddings": 2048, "rope_theta": 10000.0, "attention_bias": False,
            "tie_word_embeddings": False,
            # In the real model, the context equals the original one. Here it is longer, so that the rope scale has an effect.
            "rope_scaling": _longrope(8, 1024),
        },
        tensors=_minicpm3,
        shapes={
            "minicpm3-4b": {
                "hidden_size": 2560, "intermediate_size": 6400, "num_hidden_layers": 62, "num_attention_heads": 40,
                "num_key_value_heads": 40, "q_lora_rank": 768, "kv_lora_rank": 256, "qk_nope_head_dim": 64,
                "qk_rope_head_dim": 32, "dim_model_base": 256, "vocab_size": 73448, "max_position_embeddings": 32768,
                "rope_scaling": _longrope(16, 32768),
            },
        },
        pre="llama-bpe",
    ),
}
