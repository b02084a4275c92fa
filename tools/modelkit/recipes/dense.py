"""Families that are Llama with different norms, scales, merged matrices or windows."""

from ..tensor import TensorList
from . import CustomFamily, text_config

LLAMA = {
    "hidden_size": 128, "num_hidden_layers": 4, "intermediate_size": 320, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 1024, "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "rope_scaling": None, "hidden_act": "silu", "tie_word_embeddings": False,
    "attention_bias": False,
}


def tensors(config: dict, prefix: str = "model", head: str = "lm_head") -> TensorList:
    """Returns the tensors of the config's family."""
    text, found = text_config(config), TensorList()
    kind, hidden, ffn = text["model_type"], text["hidden_size"], text["intermediate_size"]
    heads, kv_heads = text["num_attention_heads"], text["num_key_value_heads"]
    size = text.get("head_dim") or hidden // heads
    bias, mlp_bias = (0.3 if text.get(key) else 0.0 for key in ("attention_bias", "mlp_bias"))
    found.linear(f"{prefix}.embed_tokens", text["vocab_size"], hidden)
    for layer in range(text["num_hidden_layers"]):
        at = f"{prefix}.layers.{layer}"
        if kind == "phi3":
            found.linear(f"{at}.self_attn.qkv_proj", (heads + 2 * kv_heads) * size, hidden)
        else:
            found.linear(f"{at}.self_attn.q_proj", heads * size, hidden, bias)
            found.linear(f"{at}.self_attn.k_proj", kv_heads * size, hidden, bias)
            found.linear(f"{at}.self_attn.v_proj", kv_heads * size, hidden, bias)
        found.linear(f"{at}.self_attn.o_proj", hidden, heads * size, 0.0 if kind == "glm4" else bias, 0.4)
        if kind in ("olmo2", "olmo3"):
            found.norm(f"{at}.self_attn.q_norm", heads * size)
            found.norm(f"{at}.self_attn.k_norm", kv_heads * size)
        if kind in ("phi3", "glm4"):
            found.linear(f"{at}.mlp.gate_up_proj", 2 * ffn, hidden)
        else:
            found.linear(f"{at}.mlp.gate_proj", ffn, hidden, mlp_bias)
            found.linear(f"{at}.mlp.up_proj", ffn, hidden, mlp_bias)
        found.linear(f"{at}.mlp.down_proj", hidden, ffn, mlp_bias, 0.4)
        for norm in NORMS.get(kind, ("input_layernorm", "post_attention_layernorm")):
            found.norm(f"{at}.{norm}", hidden)
    found.norm(f"{prefix}.norm", hidden)
    if not text["tie_word_embeddings"]:
        found.linear(head, text["vocab_size"], hidden)
    return found


NORMS = {
    "olmo2": ("post_attention_layernorm", "post_feedforward_layernorm"),
    "olmo3": ("post_attention_layernorm", "post_feedforward_layernorm"),
    "glm4": ("input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm"),
}


def multimodal_tensors(config: dict) -> TensorList:
    """Adds some vision tower tensors, which the loader must ignore."""
    found = tensors(config, "language_model.model", "language_model.lm_head")
    found.linear("vision_tower.transformer.layers.0.feed_forward.gate_proj", 64, 32)
    found.linear("multi_modal_projector.linear_1", config["text_config"]["hidden_size"], 32)
    return found


PHI3 = LLAMA | {"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "hidden_size": 192, "num_attention_heads": 6,
                "rope_theta": 10000.0, "partial_rotary_factor": 1.0, "original_max_position_embeddings": 128,
                "sliding_window": None}
MINISTRAL = LLAMA | {
    "architectures": ["Ministral3ForCausalLM"], "model_type": "ministral3", "head_dim": 48, "sliding_window": None,
    "rope_parameters": {
        "rope_type": "yarn", "type": "yarn", "rope_theta": 1000000.0, "factor": 16.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 64},
}
VISION = {"model_type": "pixtral", "hidden_size": 32, "num_hidden_layers": 1}
FAMILIES = {
    "olmo2": CustomFamily("OLMo 2: norms after each half, and over all heads of q and k", LLAMA | {
        "architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "rms_norm_eps": 1e-6}, tensors),
    "olmo3": CustomFamily("OLMo 3: OLMo 2 with windows in three of four layers", LLAMA | {
        "architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3", "num_hidden_layers": 5, "sliding_window": 64,
        "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 128, "beta_fast": 32.0,
                         "beta_slow": 1.0, "attention_factor": 1.2079441541679836},
        "layer_types": ["sliding_attention"] * 3 + ["full_attention", "sliding_attention"]}, tensors),
    "phi3": CustomFamily("Phi-3 mini: q, k, v in one matrix, gate and up in another, a window", PHI3 | {
        "num_key_value_heads": 6, "sliding_window": 63}, tensors),
    "phi4-mini": CustomFamily("Phi-3.5 and Phi-4 mini: longrope on three quarters of a head, tied", PHI3 | {
        "partial_rotary_factor": 0.75, "tie_word_embeddings": True,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 12,
                         "long_factor": [1.0, 1.1, 1.3, 1.6, 2.0, 2.6, 3.5, 5.0, 8.0, 13.0, 21.0, 34.0]}}, tensors),
    "granite": CustomFamily("Granite 3: scales on embeddings, scores, halves and logits, tied", LLAMA | {
        "architectures": ["GraniteForCausalLM"], "model_type": "granite", "embedding_multiplier": 12.0,
        "residual_multiplier": 0.22, "attention_multiplier": 0.0625, "logits_scaling": 4.0, "mlp_bias": False,
        "tie_word_embeddings": True}, tensors),
    "glm4": CustomFamily("GLM-4: norms around both halves, interleaved rope on half of each head, biases", LLAMA | {
        "architectures": ["Glm4ForCausalLM"], "model_type": "glm4", "head_dim": 48, "num_key_value_heads": 1,
        "attention_bias": True, "partial_rotary_factor": 0.5, "rope_theta": 10000.0}, tensors),
    "mistral-mixed": CustomFamily("Mistral with windows in some layers", LLAMA | {
        "architectures": ["MistralForCausalLM"], "model_type": "mistral", "head_dim": 48, "sliding_window": 64,
        "layer_types": ["sliding_attention", "full_attention"] * 2}, tensors),
    "ministral3": CustomFamily("Ministral 3: yarn, queries scaled by position, windows in some layers", MINISTRAL | {
        "sliding_window": 64, "layer_types": ["full_attention", "sliding_attention"] * 2}, tensors),
    "mistral3": CustomFamily("Mistral 3: Ministral as the text part of a multimodal checkpoint", {
        "architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", "text_config": MINISTRAL,
        "vision_config": VISION}, multimodal_tensors),
    "mistral3-small": CustomFamily("Mistral Small 3.1: Mistral as the text part of a multimodal checkpoint", {
        "architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", "vision_config": VISION,
        "text_config": LLAMA | {"model_type": "mistral", "head_dim": 48, "sliding_window": None}}, multimodal_tensors),
}
