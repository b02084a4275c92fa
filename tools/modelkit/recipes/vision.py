"""Models that take images: tiny towers of all families with all tensors, beside the text models of the other files."""

from ..tensor import TensorList
from . import CustomFamily, dense, gemma3, gemma4, qwen3_vl, qwen_hybrid

# Ids of the image tokens: the tokenizer adds them after its vocabulary of 480.
FIRST_ID = 480


def ids_of(specials: tuple[str, ...]) -> dict[str, int]:
    return {text: FIRST_ID + i for i, text in enumerate(specials)}


def layer_norm(found: TensorList, name: str, width: int) -> None:
    found.norm(name, width)
    found.values(f"{name}.bias", (width,), 0.0, 0.1)


# ChatML whose content is text or a list of parts, as in Qwen's own template.
def chat_template(image: str) -> str:
    return (
        "{%- macro render(content) -%}{%- if content is string -%}{{- content -}}{%- else -%}{%- for part in content -%}"
        "{%- if part.type == 'image' or 'image' in part or 'image_url' in part -%}{{- '" + image + "' -}}"
        "{%- elif 'text' in part -%}{{- part.text -}}{%- endif -%}{%- endfor -%}{%- endif -%}{%- endmacro -%}"
        "{%- for message in messages -%}{{- '<|im_start|>' + message.role + '\\n' + render(message.content) + '<|im_end|>\\n' -}}"
        "{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
    )


QWEN_SPECIALS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
QWEN_IDS = ids_of(QWEN_SPECIALS)
QWEN_VISION = {
    "model_type": "qwen3_5", "depth": 3, "hidden_size": 144, "intermediate_size": 200, "num_heads": 2, "in_channels": 3,
    "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 128, "num_position_embeddings": 64,
    "hidden_act": "gelu_pytorch_tanh", "deepstack_visual_indexes": [],
}
QWEN = qwen_hybrid.FAMILIES["qwen3.5"].tiny | {
    "vision_config": QWEN_VISION, "image_token_id": QWEN_IDS["<|image_pad|>"], "video_token_id": QWEN_IDS["<|video_pad|>"],
    "vision_start_token_id": QWEN_IDS["<|vision_start|>"], "vision_end_token_id": QWEN_IDS["<|vision_end|>"],
}
QWEN_PROCESSOR = {
    "size": {"shortest_edge": 4096, "longest_edge": 16777216}, "patch_size": 16, "temporal_patch_size": 2, "merge_size": 2,
    "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "image_processor_type": "Qwen2VLImageProcessorFast",
}


def qwen_tower(config: dict, at: str, channels_last: bool) -> TensorList:
    found, vision = TensorList(), config["vision_config"]
    hidden, inner, patch = vision["hidden_size"], vision["intermediate_size"], vision["patch_size"]
    frames, joined = vision["temporal_patch_size"], hidden * vision["spatial_merge_size"] ** 2
    shape = (hidden, frames, patch, patch, 3) if channels_last else (hidden, 3, frames, patch, patch)
    found.values(f"{at}.patch_embed.proj.weight", shape, 0.0, (3 * frames * patch * patch) ** -0.5)
    found.values(f"{at}.patch_embed.proj.bias", (hidden,), 0.0, 0.3)
    found.values(f"{at}.pos_embed.weight", (vision["num_position_embeddings"], hidden), 0.0, 0.5)
    for layer in range(vision["depth"]):
        block = f"{at}.blocks.{layer}"
        layer_norm(found, f"{block}.norm1", hidden)
        layer_norm(found, f"{block}.norm2", hidden)
        found.linear(f"{block}.attn.qkv", 3 * hidden, hidden, 0.3)
        found.linear(f"{block}.attn.proj", hidden, hidden, 0.2, 0.5)
        found.linear(f"{block}.mlp.linear_fc1", inner, hidden, 0.3)
        found.linear(f"{block}.mlp.linear_fc2", hidden, inner, 0.2, 0.5)
    mergers = [("merger", hidden)]
    mergers += [(f"deepstack_merger_list.{i}", joined) for i in range(len(vision["deepstack_visual_indexes"]))]
    for merger, normed in mergers:
        layer_norm(found, f"{at}.{merger}.norm", normed)
        found.linear(f"{at}.{merger}.linear_fc1", joined, joined, 0.3)
        found.linear(f"{at}.{merger}.linear_fc2", vision["out_hidden_size"], joined, 0.2)
    return found


def without(tensors: TensorList, *starts: str) -> TensorList:
    """The text model of another file, which has some tensors of a tower."""
    return TensorList(t for t in tensors if not t.name.startswith(starts))


def qwen_tensors(config: dict) -> TensorList:
    text = qwen_hybrid.FAMILIES["qwen3.5"].tensors(config)
    return TensorList([*without(text, "model.visual", "mtp."), *qwen_tower(config, "model.visual", False)])


def qwen_mlx_tensors(config: dict) -> TensorList:
    text = qwen_hybrid.FAMILIES["qwen3.5-mlx"].tensors(config)
    return TensorList([*without(text, "vision_tower"), *qwen_tower(config, "vision_tower", True)])


def qwen_moe_tensors(config: dict) -> TensorList:
    text = qwen_hybrid.FAMILIES["qwen3.5-moe"].tensors(config)
    return TensorList([*without(text, "model.visual", "mtp."), *qwen_tower(config, "model.visual", False)])


def qwen3_vl_config(kind: str, text: dict) -> dict:
    return {key: value for key, value in QWEN.items() if key.endswith("_token_id")} | {
        "architectures": ["Qwen3VLForConditionalGeneration"], "model_type": kind, "text_config": text,
        "tie_word_embeddings": text["tie_word_embeddings"],
        "vision_config": QWEN_VISION | {"model_type": kind, "deepstack_visual_indexes": [0, 2]}}


QWEN3_VL = qwen3_vl_config("qwen3_vl", qwen3_vl.TEXT)
QWEN3_VL_MOE = qwen3_vl_config("qwen3_vl_moe", qwen3_vl.MOE_TEXT)


def qwen3_vl_tensors(config: dict) -> TensorList:
    text = qwen3_vl.text_tensors(config, "model.language_model", "lm_head")
    return TensorList([*text, *qwen_tower(config, "model.visual", False)])


def qwen3_vl_mlx_tensors(config: dict) -> TensorList:
    text = qwen3_vl.text_tensors(config, "language_model.model", "language_model.lm_head", published=False)
    return TensorList([*text, *qwen_tower(config, "vision_tower", True)])


GEMMA4_SPECIALS = ("<|image>", "<image|>", "<|image|>")
GEMMA4_IDS = ids_of(GEMMA4_SPECIALS)
GEMMA4_TOKENS = {
    "boi_token_id": GEMMA4_IDS["<|image>"], "eoi_token_id": GEMMA4_IDS["<image|>"], "image_token_id": GEMMA4_IDS["<|image|>"],
}
GEMMA4_VISION = {
    "model_type": "gemma4_vision", "hidden_size": 96, "intermediate_size": 160, "num_hidden_layers": 3, "num_attention_heads": 3,
    "num_key_value_heads": 3, "head_dim": 32, "hidden_activation": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6,
    "attention_bias": False, "rope_parameters": {"rope_theta": 100.0, "rope_type": "default"}, "patch_size": 16,
    "pooling_kernel_size": 3, "position_embedding_size": 1024, "default_output_length": 70, "use_clipped_linears": True,
    "standardize": False,
}
GEMMA4 = {
    "architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "vocab_size": 512, "text_config": gemma4.SHARING,
    "vision_config": GEMMA4_VISION, "vision_soft_tokens_per_image": 70,
} | GEMMA4_TOKENS
GEMMA4_DENSE = GEMMA4 | {
    "text_config": gemma4.KEYS_AS_VALUES,
    "vision_config": GEMMA4_VISION | {"hidden_size": 144, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 72,
                                      "use_clipped_linears": False, "standardize": True},
}
GEMMA4_PROCESSOR = {"image_processor": {
    "do_normalize": False, "image_mean": [0.0, 0.0, 0.0], "image_std": [1.0, 1.0, 1.0], "max_soft_tokens": 70, "patch_size": 16,
    "pooling_kernel_size": 3, "resample": 3, "rescale_factor": 0.00392156862745098,
}}


def gemma4_tensors(config: dict) -> TensorList:
    vision, at = config["vision_config"], "model.vision_tower"
    found = gemma4.text_tensors(config["text_config"], "model.language_model", unused=True)
    hidden, inner, size = vision["hidden_size"], vision["intermediate_size"], vision["head_dim"]
    heads, kv_heads = vision["num_attention_heads"], vision["num_key_value_heads"]
    found.linear(f"{at}.patch_embedder.input_proj", hidden, 3 * vision["patch_size"] ** 2)
    found.values(f"{at}.patch_embedder.position_embedding_table", (2, vision["position_embedding_size"], hidden), 0.0, 0.5)

    def linear(name: str, rows: int, columns: int) -> None:
        found.linear(f"{name}.linear", rows, columns)
        if vision["use_clipped_linears"]:
            for end, limit in (("input_min", -1.8), ("input_max", 1.8), ("output_min", -2.0), ("output_max", 2.0)):
                found.values(f"{name}.{end}", (), limit, 0.1)

    for layer in range(vision["num_hidden_layers"]):
        block = f"{at}.encoder.layers.{layer}"
        for norm in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            found.norm(f"{block}.{norm}_layernorm", hidden)
        linear(f"{block}.self_attn.q_proj", heads * size, hidden)
        linear(f"{block}.self_attn.k_proj", kv_heads * size, hidden)
        linear(f"{block}.self_attn.v_proj", kv_heads * size, hidden)
        linear(f"{block}.self_attn.o_proj", hidden, heads * size)
        # Scores are not scaled.
        found.values(f"{block}.self_attn.q_norm.weight", (size,), 0.18, 0.03)
        found.norm(f"{block}.self_attn.k_norm", size)
        linear(f"{block}.mlp.gate_proj", inner, hidden)
        linear(f"{block}.mlp.up_proj", inner, hidden)
        linear(f"{block}.mlp.down_proj", hidden, inner)
    if vision["standardize"]:
        found.values(f"{at}.std_bias", (hidden,), 0.0, 1.0)
        found.values(f"{at}.std_scale", (hidden,), 0.2, 0.05)
    found.linear("model.embed_vision.embedding_projection", config["text_config"]["hidden_size"], hidden)
    return found


GEMMA3_SPECIALS = ("<start_of_image>", "<end_of_image>", "<image_soft_token>")
GEMMA3_IDS = ids_of(GEMMA3_SPECIALS)
# 12 x 12 patches, averaged in blocks of 4 x 4.
GEMMA3 = gemma3.MULTIMODAL | {
    "mm_tokens_per_image": 9, "boi_token_index": GEMMA3_IDS["<start_of_image>"], "eoi_token_index": GEMMA3_IDS["<end_of_image>"],
    "image_token_index": GEMMA3_IDS["<image_soft_token>"],
    "vision_config": {
        "model_type": "siglip_vision_model", "hidden_size": 144, "intermediate_size": 200, "num_hidden_layers": 3,
        "num_attention_heads": 2, "patch_size": 14, "image_size": 168, "num_channels": 3, "layer_norm_eps": 1e-6,
        "hidden_act": "gelu_pytorch_tanh", "vision_use_head": False},
}
GEMMA3_PROCESSOR = {
    "do_pan_and_scan": None, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "resample": 2,
    "rescale_factor": 0.00392156862745098, "size": {"height": 168, "width": 168},
}


def gemma3_tensors(config: dict) -> TensorList:
    vision, at = config["vision_config"], "vision_tower.vision_model"
    found = gemma3.text_tensors(config["text_config"], "language_model.")
    hidden, inner, patch = vision["hidden_size"], vision["intermediate_size"], vision["patch_size"]
    found.values(f"{at}.embeddings.patch_embedding.weight", (hidden, 3, patch, patch), 0.0, (3 * patch * patch) ** -0.5)
    found.values(f"{at}.embeddings.patch_embedding.bias", (hidden,), 0.0, 0.3)
    found.values(f"{at}.embeddings.position_embedding.weight", ((vision["image_size"] // patch) ** 2, hidden), 0.0, 0.5)
    for layer in range(vision["num_hidden_layers"]):
        block = f"{at}.encoder.layers.{layer}"
        layer_norm(found, f"{block}.layer_norm1", hidden)
        layer_norm(found, f"{block}.layer_norm2", hidden)
        for name in ("q_proj", "k_proj", "v_proj"):
            found.linear(f"{block}.self_attn.{name}", hidden, hidden, 0.3)
        found.linear(f"{block}.self_attn.out_proj", hidden, hidden, 0.2, 0.5)
        found.linear(f"{block}.mlp.fc1", inner, hidden, 0.3)
        found.linear(f"{block}.mlp.fc2", hidden, inner, 0.2, 0.5)
    layer_norm(found, f"{at}.post_layernorm", hidden)
    text_hidden = config["text_config"]["hidden_size"]
    found.norm("multi_modal_projector.mm_soft_emb_norm", hidden, mean=0.0)
    found.values("multi_modal_projector.mm_input_projection_weight", (hidden, text_hidden), 0.0, hidden ** -0.5)
    return found


MISTRAL3_SPECIALS = ("[IMG]", "[IMG_BREAK]", "[IMG_END]")
MISTRAL3 = dense.FAMILIES["mistral3"].tiny | {
    "image_token_index": ids_of(MISTRAL3_SPECIALS)["[IMG]"], "spatial_merge_size": 2, "multimodal_projector_bias": False,
    "projector_hidden_act": "gelu", "vision_feature_layer": -1,
    "vision_config": {
        "model_type": "pixtral", "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 3, "num_attention_heads": 2,
        "head_dim": 64, "patch_size": 14, "image_size": 448, "num_channels": 3, "hidden_act": "silu", "rope_theta": 10000.0},
}
MISTRAL3_PROCESSOR = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711], "patch_size": 14,
    "size": {"longest_edge": 448}, "resample": 3, "spatial_merge_size": 2,
}


def mistral3_tensors(config: dict) -> TensorList:
    vision, at = config["vision_config"], "vision_tower"
    found = dense.tensors(config, "language_model.model", "language_model.lm_head")
    hidden, inner, patch = vision["hidden_size"], vision["intermediate_size"], vision["patch_size"]
    found.values(f"{at}.patch_conv.weight", (hidden, 3, patch, patch), 0.0, (3 * patch * patch) ** -0.5)
    found.norm(f"{at}.ln_pre", hidden)
    for layer in range(vision["num_hidden_layers"]):
        block = f"{at}.transformer.layers.{layer}"
        found.norm(f"{block}.attention_norm", hidden)
        found.norm(f"{block}.ffn_norm", hidden)
        for name in ("q_proj", "k_proj", "v_proj"):
            found.linear(f"{block}.attention.{name}", hidden, hidden)
        found.linear(f"{block}.attention.o_proj", hidden, hidden, gain=0.5)
        found.mlp(f"{block}.feed_forward", hidden, inner)
    text_hidden, merged = config["text_config"]["hidden_size"], hidden * config["spatial_merge_size"] ** 2
    found.norm("multi_modal_projector.norm", hidden)
    found.linear("multi_modal_projector.patch_merger.merging_layer", hidden, merged)
    found.linear("multi_modal_projector.linear_1", text_hidden, hidden)
    found.linear("multi_modal_projector.linear_2", text_hidden, text_hidden)
    return found


def _qwen(about: str, tiny: dict, tensors) -> CustomFamily:
    return CustomFamily(about, tiny, tensors, specials=QWEN_SPECIALS, processor=QWEN_PROCESSOR,
                        chat_template=chat_template("<|vision_start|><|image_pad|><|vision_end|>"))


def _gemma4(about: str, tiny: dict) -> CustomFamily:
    return CustomFamily(about, tiny, gemma4_tensors, specials=GEMMA4_SPECIALS, processor=GEMMA4_PROCESSOR,
                        chat_template=chat_template("<|image|>"))


FAMILIES = {
    "qwen3.5-vision": _qwen("Qwen3.5 with its whole vision tower", QWEN, qwen_tensors),
    "qwen3.5-vision-mlx": _qwen(
        "Qwen3.5 with its tower as mlx-vlm converts it", qwen_hybrid.FAMILIES["qwen3.5-mlx"].tiny | {
            key: QWEN[key] for key in ("vision_config", "image_token_id", "vision_start_token_id", "vision_end_token_id")},
        qwen_mlx_tensors),
    "qwen3.5-moe-vision": _qwen(
        "Qwen3.5 with experts and its whole vision tower", qwen_hybrid.FAMILIES["qwen3.5-moe"].tiny | {
            key: QWEN[key] for key in ("image_token_id", "vision_start_token_id", "vision_end_token_id")} | {
            "vision_config": QWEN_VISION | {
                "out_hidden_size": qwen_hybrid.FAMILIES["qwen3.5-moe"].tiny["text_config"]["hidden_size"]}},
        qwen_moe_tensors),
    "qwen3.5-wide-vision": _qwen(
        "Qwen3.5 with a tower as wide as the published one, for time limits", QWEN | {"vision_config": QWEN_VISION | {
            "depth": 2, "hidden_size": 1152, "num_heads": 16, "intermediate_size": 4304, "num_position_embeddings": 2304}},
        qwen_tensors),
    "qwen3-vl": _qwen("Qwen3-VL with its tower, three parts per row, tied output", QWEN3_VL, qwen3_vl_tensors),
    "qwen3-vl-mlx": _qwen("Qwen3-VL as mlx-vlm converts it", QWEN3_VL, qwen3_vl_mlx_tensors),
    "qwen3-vl-moe": _qwen("Qwen3-VL with experts, as published", QWEN3_VL_MOE, qwen3_vl_tensors),
    "qwen3-vl-moe-mlx": _qwen("Qwen3-VL with experts, as mlx-vlm converts it", QWEN3_VL_MOE, qwen3_vl_mlx_tensors),
    "gemma4-vision": _gemma4("Gemma 4 E2B with its tower: clamped linear layers, causal text", GEMMA4),
    "gemma4-dense-vision": _gemma4("Gemma 4 31B with its tower: heads of 72, images that see themselves", GEMMA4_DENSE),
    "gemma3-vision": CustomFamily(
        "Gemma 3 with its whole SigLIP tower", GEMMA3, gemma3_tensors, specials=GEMMA3_SPECIALS, processor=GEMMA3_PROCESSOR,
        chat_template=chat_template("<start_of_image>")),
    "mistral3-vision": CustomFamily(
        "Mistral 3 with its whole Pixtral tower", MISTRAL3, mistral3_tensors, specials=MISTRAL3_SPECIALS,
        processor=MISTRAL3_PROCESSOR, chat_template=chat_template("[IMG]")),
}
