"""Gemma 3: sandwich norms that store w of 1 + w, norms on q and k, two ropes, windows in five of six layers."""

from ..tensor import TensorList
from . import CustomFamily, text_config

TEXT = {
    "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "hidden_size": 144, "num_hidden_layers": 7,
    "intermediate_size": 864, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 32, "vocab_size": 512,
    "max_position_embeddings": 1024, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
    "rope_scaling": None, "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 24,
    "attn_logit_softcapping": None, "final_logit_softcapping": None, "sliding_window": 64, "sliding_window_pattern": 6,
    "attention_bias": False, "cache_implementation": "hybrid",
}
MULTIMODAL = {
    "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "vocab_size": 512,
    "mm_tokens_per_image": 256, "image_token_index": 262144, "boi_token_index": 255999, "eoi_token_index": 256000,
    "text_config": TEXT | {"num_attention_heads": 8, "num_key_value_heads": 4,
                           "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
    "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 32, "num_hidden_layers": 1},
}


def text_tensors(config: dict, prefix: str = "") -> TensorList:
    found = TensorList()
    hidden, size = config["hidden_size"], config["head_dim"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    found.linear(f"{prefix}model.embed_tokens", config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"{prefix}model.layers.{layer}"
        found.linear(f"{at}.self_attn.q_proj", heads * size, hidden)
        found.linear(f"{at}.self_attn.k_proj", kv_heads * size, hidden)
        found.linear(f"{at}.self_attn.v_proj", kv_heads * size, hidden)
        found.linear(f"{at}.self_attn.o_proj", hidden, heads * size)
        found.norm(f"{at}.self_attn.q_norm", size, mean=0.0)
        found.norm(f"{at}.self_attn.k_norm", size, mean=0.0)
        found.mlp(f"{at}.mlp", hidden, config["intermediate_size"])
        for norm in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            found.norm(f"{at}.{norm}_layernorm", hidden, mean=0.0)
    found.norm(f"{prefix}model.norm", hidden, mean=0.0)
    return found


def tensors(config: dict) -> TensorList:
    """Adds some vision tower tensors, which the loader must ignore."""
    found = text_tensors(text_config(config), "language_model.")
    found.linear("vision_tower.vision_model.encoder.layers.0.mlp.fc1", 64, 32, bias=0.1)
    found.values("multi_modal_projector.mm_input_projection_weight", (32, config["text_config"]["hidden_size"]))
    return found


FAMILIES = {
    "gemma3-text": CustomFamily(
        "Gemma 3 1B: sandwich norms, norms on q and k, windows in five of six layers", TEXT, text_tensors, {
            "gemma-3-1b": {
                "hidden_size": 1152, "num_hidden_layers": 26, "intermediate_size": 6912, "head_dim": 256,
                "vocab_size": 262144, "max_position_embeddings": 32768, "query_pre_attn_scalar": 256,
                "sliding_window": 512},
        }),
    "gemma3": CustomFamily(
        "Gemma 3 4B and up: the text part of a multimodal checkpoint", MULTIMODAL, tensors, {
            "gemma-3-4b": {
                "hidden_size": 2560, "num_hidden_layers": 34, "intermediate_size": 10240, "head_dim": 256,
                "vocab_size": 262208, "max_position_embeddings": 131072, "query_pre_attn_scalar": 256,
                "sliding_window": 1024},
        }),
}
