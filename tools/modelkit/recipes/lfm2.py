"""LFM2: gated short convolutions, with attention in some layers."""

from . import CustomFamily
from ..tensor import TensorList

TINY = {
    "architectures": ["Lfm2ForCausalLM"],
    "model_type": "lfm2",
    "hidden_size": 128,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "max_position_embeddings": 2048,
    "vocab_size": 512,
    "norm_eps": 1e-5,
    "conv_bias": False,
    "conv_L_cache": 3,
    "conv_dim": 128,
    "block_dim": 128,
    "block_ff_dim": 384,
    "block_multiple_of": 64,
    "block_ffn_dim_multiplier": 1.0,
    "block_auto_adjust_ff_dim": True,
    "full_attn_idxs": [2, 5, 7],
    "rope_theta": 1e6,
    "tie_embedding": True,
}
LFM2_1_2B = {
    "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
    "max_position_embeddings": 128000, "vocab_size": 65536, "conv_dim": 2048, "block_dim": 2048, "block_ff_dim": 12288,
    "block_multiple_of": 256, "full_attn_idxs": [2, 5, 8, 10, 12, 14],
}


def ffn_width(config: dict) -> int:
    width = config["block_ff_dim"]
    if not config["block_auto_adjust_ff_dim"]:
        return width
    width, multiple = int(config["block_ffn_dim_multiplier"] * int(2 * width / 3)), config["block_multiple_of"]
    return multiple * -(-width // multiple)


def tensors(config: dict) -> TensorList:
    hidden, ffn = config["hidden_size"], ffn_width(config)
    head = hidden // config["num_attention_heads"]
    kv = head * config["num_key_value_heads"]
    bias = 0.2 if config["conv_bias"] else 0.0
    found = TensorList()
    found.linear("model.embed_tokens", config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        found.norm(f"{at}.operator_norm", hidden)
        if layer in config["full_attn_idxs"]:
            found.linear(f"{at}.self_attn.q_proj", hidden, hidden)
            found.linear(f"{at}.self_attn.k_proj", kv, hidden)
            found.linear(f"{at}.self_attn.v_proj", kv, hidden)
            found.norm(f"{at}.self_attn.q_layernorm", head)
            found.norm(f"{at}.self_attn.k_layernorm", head)
            found.linear(f"{at}.self_attn.out_proj", hidden, hidden, gain=0.2)
        else:
            found.linear(f"{at}.conv.in_proj", 3 * hidden, hidden, bias)
            found.values(f"{at}.conv.conv.weight", (hidden, 1, config["conv_L_cache"]), std=0.6)
            if bias:
                found.values(f"{at}.conv.conv.bias", (hidden,), std=bias)
            found.linear(f"{at}.conv.out_proj", hidden, hidden, bias, gain=0.3)
        found.norm(f"{at}.ffn_norm", hidden)
        found.linear(f"{at}.feed_forward.w1", ffn, hidden)
        found.linear(f"{at}.feed_forward.w3", ffn, hidden)
        found.linear(f"{at}.feed_forward.w2", hidden, ffn, gain=0.2)
    found.norm("model.embedding_norm", hidden)
    return found


FAMILIES = {
    "lfm2": CustomFamily("LFM2: gated short convolutions, attention in some layers", TINY, tensors,
                         {"lfm2-1.2b": LFM2_1_2B}),
}
