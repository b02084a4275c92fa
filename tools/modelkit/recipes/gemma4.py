"""Gemma 4: heads of two sizes, shared KV caches, keys used as values, per-layer inputs, layer scalars."""

from ..tensor import TensorList
from . import CustomFamily, text_config

ROPES = {
    "full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
    "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
}
# Like E2B: the second half of the layers reads the KV caches of layers 3 and 4.
SHARING = {
    "architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "hidden_size": 96, "num_hidden_layers": 10,
    "intermediate_size": 384, "num_attention_heads": 8, "num_key_value_heads": 1, "num_global_key_value_heads": None,
    "head_dim": 32, "global_head_dim": 64, "vocab_size": 512, "vocab_size_per_layer_input": 512,
    "hidden_size_per_layer_input": 16, "max_position_embeddings": 1024, "rms_norm_eps": 1e-6, "rope_parameters": ROPES,
    "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 64, "num_kv_shared_layers": 5,
    "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 2, "attention_k_eq_v": False,
    "use_double_wide_mlp": True, "enable_moe_block": False, "num_experts": None, "top_k_experts": None,
    "moe_intermediate_size": None, "final_logit_softcapping": 3.0, "attention_bias": False,
    "tie_word_embeddings": True, "use_bidirectional_attention": None,
}
# Like 31B: every layer has its own KV cache; full-attention layers have fewer heads and no v_proj.
KEYS_AS_VALUES = SHARING | {
    "num_hidden_layers": 7, "num_kv_shared_layers": 0, "layer_types": ["sliding_attention"] * 5 + ["full_attention"] * 2,
    "num_key_value_heads": 4, "num_global_key_value_heads": 1, "attention_k_eq_v": True, "use_double_wide_mlp": False,
    "hidden_size_per_layer_input": 0, "use_bidirectional_attention": "vision",
}


def _layer(found: TensorList, config: dict, at: str, index: int, unused: bool) -> None:
    hidden, full = config["hidden_size"], config["layer_types"][index] == "full_attention"
    size = config["global_head_dim"] if full else config["head_dim"]
    keys_as_values = full and config["attention_k_eq_v"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    if keys_as_values:
        kv_heads = config["num_global_key_value_heads"] or kv_heads
    shared = config["num_kv_shared_layers"] and index >= config["num_hidden_layers"] - config["num_kv_shared_layers"]
    found.linear(f"{at}.self_attn.q_proj", heads * size, hidden)
    found.linear(f"{at}.self_attn.o_proj", hidden, heads * size)
    # Scores are not scaled. This keeps their standard deviation at about one, as in other models.
    found.values(f"{at}.self_attn.q_norm.weight", (size,), 0.14, 0.03)
    if not shared or unused:
        found.linear(f"{at}.self_attn.k_proj", kv_heads * size, hidden)
        found.norm(f"{at}.self_attn.k_norm", size)
        if not keys_as_values:
            found.linear(f"{at}.self_attn.v_proj", kv_heads * size, hidden)
    wide = 2 if shared and config["use_double_wide_mlp"] else 1
    found.mlp(f"{at}.mlp", hidden, wide * config["intermediate_size"])
    for norm in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
        found.norm(f"{at}.{norm}_layernorm", hidden)
    if config["enable_moe_block"]:
        count, ffn = config["num_experts"], config["moe_intermediate_size"]
        found.linear(f"{at}.router.proj", count, hidden, gain=4.0)
        found.values(f"{at}.router.scale", (hidden,), 10.0, 1.0)
        found.values(f"{at}.router.per_expert_scale", (count,), 1.0, 0.2)
        found.values(f"{at}.experts.gate_up_proj", (count, 2 * ffn, hidden), std=hidden ** -0.5)
        found.values(f"{at}.experts.down_proj", (count, hidden, ffn), std=0.2 * ffn ** -0.5)
        for norm in ("post_feedforward_layernorm_1", "pre_feedforward_layernorm_2", "post_feedforward_layernorm_2"):
            found.norm(f"{at}.{norm}", hidden)
    if width := config["hidden_size_per_layer_input"]:
        found.linear(f"{at}.per_layer_input_gate", width, hidden)
        found.linear(f"{at}.per_layer_projection", hidden, width)
        found.norm(f"{at}.post_per_layer_input_norm", hidden)
    found.values(f"{at}.layer_scalar", (1,), 0.8, 0.1)


def text_tensors(config: dict, prefix: str = "model", unused: bool = False) -> TensorList:
    """`unused`: also writes the projections that layers without their own KV cache do not need, as in real checkpoints."""
    found = TensorList()
    hidden, layers, width = config["hidden_size"], config["num_hidden_layers"], config["hidden_size_per_layer_input"]
    found.linear(f"{prefix}.embed_tokens", config["vocab_size"], hidden)
    for index in range(layers):
        _layer(found, config, f"{prefix}.layers.{index}", index, unused)
    if width:
        found.linear(f"{prefix}.embed_tokens_per_layer", config["vocab_size_per_layer_input"], layers * width, gain=4.0)
        found.linear(f"{prefix}.per_layer_model_projection", layers * width, hidden)
        found.norm(f"{prefix}.per_layer_projection_norm", width)
    found.norm(f"{prefix}.norm", hidden)
    return found


def tensors(config: dict) -> TensorList:
    """Adds some vision tower tensors, which the loader must ignore."""
    found = text_tensors(text_config(config), "model.language_model", unused=True)
    found.linear("model.vision_tower.encoder.layers.0.mlp.gate_proj.linear", 64, 32)
    found.linear("model.embed_vision.embedding_projection", config["text_config"]["hidden_size"], 32)
    return found


E2B = {
    "hidden_size": 1536, "num_hidden_layers": 35, "intermediate_size": 6144, "head_dim": 256, "global_head_dim": 512,
    "vocab_size": 262144, "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256,
    "max_position_embeddings": 131072, "sliding_window": 512, "num_kv_shared_layers": 20,
    "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7, "final_logit_softcapping": 30.0,
}
FAMILIES = {
    "gemma4-text": CustomFamily("Gemma 4 E2B, E4B: shared caches, per-layer inputs", SHARING, text_tensors,
                                {"gemma-4-e2b": E2B}),
    "gemma4-dense": CustomFamily("Gemma 4 31B: keys used as values in full-attention layers", KEYS_AS_VALUES, text_tensors),
    "gemma4-moe": CustomFamily("Gemma 4 26B-A4B: a dense MLP in parallel with experts", KEYS_AS_VALUES | {
        "enable_moe_block": True, "num_experts": 16, "top_k_experts": 4, "moe_intermediate_size": 48}, text_tensors),
    "gemma4": CustomFamily("Gemma 4: the text part of a multimodal checkpoint", {
        "architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "vocab_size": 512,
        "text_config": SHARING, "vision_config": {"model_type": "gemma4_vision", "hidden_size": 32}}, tensors),
}
