"""Mixtral: Mistral with experts in every layer."""

from . import CustomFamily
from ..tensor import TensorList

TINY = {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "intermediate_size": 448,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1e6,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "sliding_window": None,
    "output_router_logits": False,
    "router_aux_loss_coef": 0.02,
}


def tensors(config: dict, stacked: bool = False) -> TensorList:
    found, hidden = TensorList(), config["hidden_size"]
    kv = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    found.linear("model.embed_tokens", config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        found.norm(f"{at}.input_layernorm", hidden)
        found.linear(f"{at}.self_attn.q_proj", hidden, hidden)
        found.linear(f"{at}.self_attn.k_proj", kv, hidden)
        found.linear(f"{at}.self_attn.v_proj", kv, hidden)
        found.linear(f"{at}.self_attn.o_proj", hidden, hidden, gain=0.2)
        found.norm(f"{at}.post_attention_layernorm", hidden)
        found.linear(f"{at}.block_sparse_moe.gate", config["num_local_experts"], hidden)
        found.experts(f"{at}.block_sparse_moe", config["num_local_experts"], hidden, config["intermediate_size"], stacked,
                      names=("w1", "w3", "w2"))
    found.norm("model.norm", hidden)
    found.linear("lm_head", config["vocab_size"], hidden)
    return found


def stacked_tensors(config: dict) -> TensorList:
    return tensors(config, stacked=True)


FAMILIES = {
    "mixtral": CustomFamily("Mixtral: experts in every layer, as published", TINY, tensors, pre="llama-bpe"),
    "mixtral-mlx": CustomFamily("Mixtral: as mlx-lm converts it", TINY, stacked_tensors, pre="llama-bpe"),
}
