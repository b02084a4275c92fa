"""Gemma 2: sandwich norms that store w of 1 + w, soft caps, a window in every second layer."""

from ..tensor import TensorList
from . import CustomFamily

TINY = {
    "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "hidden_size": 144, "num_hidden_layers": 4,
    "intermediate_size": 576, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 512,
    "max_position_embeddings": 1024, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "gelu_pytorch_tanh",
    "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 24, "attn_logit_softcapping": 5.0,
    "final_logit_softcapping": 3.0, "sliding_window": 64, "cache_implementation": "hybrid", "attention_bias": False,
}


def tensors(config: dict) -> TensorList:
    found = TensorList()
    hidden, size = config["hidden_size"], config["head_dim"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    found.linear("model.embed_tokens", config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        found.linear(f"{at}.self_attn.q_proj", heads * size, hidden)
        found.linear(f"{at}.self_attn.k_proj", kv_heads * size, hidden)
        found.linear(f"{at}.self_attn.v_proj", kv_heads * size, hidden)
        found.linear(f"{at}.self_attn.o_proj", hidden, heads * size)
        found.mlp(f"{at}.mlp", hidden, config["intermediate_size"])
        for norm in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            found.norm(f"{at}.{norm}_layernorm", hidden, mean=0.0)
    found.norm("model.norm", hidden, mean=0.0)
    return found


FAMILIES = {"gemma2": CustomFamily(
    "Gemma 2: sandwich norms, soft caps, a window in every second layer", TINY, tensors, {
        "gemma-2-2b": {
            "hidden_size": 2304, "num_hidden_layers": 26, "intermediate_size": 9216, "num_attention_heads": 8,
            "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000, "max_position_embeddings": 8192,
            "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
            "sliding_window": 4096},
    })}
