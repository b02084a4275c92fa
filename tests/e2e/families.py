"""All tested model families, as data: how each test checkpoint is made, which real models it represents and what it is compared with.

test_families.py runs them, and tools/models_table.py generates docs/models.md from them."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One tiny checkpoint: a recipe of tools/modelkit and the features it covers."""

    family: str  # modelkit's name for it
    model_type: str  # in config.json
    stands_for: str  # the real models it represents
    shows: str = ""  # what only this case covers
    recipe: dict = field(default_factory=dict)  # additional fields of modelkit.Recipe
    oracle: str = "mlx-lm"  # what the logits are compared with


CASES = {
    "lfm2": Case("lfm2", "lfm2", "LFM2", "short convolutions, attention in some layers"),
    "lfm2_moe": Case("lfm2_moe", "lfm2_moe", "LFM2-8B-A1B", "experts selected by sigmoid and a bias",
                     # With seed 0, two experts of a token differ by less than float32's precision.
                     {"seed": 1}),
    "lfm2_moe-mlx": Case("lfm2_moe-mlx", "lfm2_moe", "LFM2 with experts, converted by mlx-lm", "stacked experts, 4 bits",
                         {"format": "mlx", "bits": 4, "group_size": 32, "overrides": (("use_expert_bias", False),)}),
    "llama": Case("llama", "llama", "Llama 2, 3, 3.1", "llama3 rope scaling"),
    "llama-biases": Case("llama", "llama", "Llama", "biases", {"biases": True}),
    "llama-tied": Case("llama-tied", "llama", "Llama 3.2", "tied embeddings"),
    "smollm2": Case("smollm2", "llama", "SmolLM2", "9 heads, 3 KV heads"),
    "smollm3": Case("smollm3", "smollm3", "SmolLM3", "layers without rope"),
    "minicpm3": Case("minicpm3", "minicpm3", "MiniCPM3 4B", "MLA; scales on embeddings, layers and logits"),
    "minicpm3-biases": Case("minicpm3", "minicpm3", "MiniCPM3", "biases", {"overrides": (("attention_bias", True),)}),
    # Unlike the model's own code, mlx-lm does not scale the logits of tied embeddings, so the scale here is 1.
    "minicpm3-tied": Case("minicpm3", "minicpm3", "MiniCPM3", "tied embeddings",
                          {"overrides": (("tie_word_embeddings", True), ("dim_model_base", 160))}),
    "minicpm3-4bit": Case("minicpm3", "minicpm3", "MiniCPM3", "4 bits: W_k is dequantised for the absorbed form",
                          {"format": "mlx", "bits": 4, "group_size": 32,
                           "overrides": (("q_lora_rank", 64), ("intermediate_size", 416))}),
    "deepseek_v2-lite": Case("deepseek_v2-lite", "deepseek_v2", "DeepSeek-V2-Lite, DeepSeek-Coder-V2-Lite",
                             "MLA, experts, yarn with interleaved rope"),
    "deepseek_v2": Case("deepseek_v2", "deepseek_v2", "DeepSeek-V2, V2.5", "low-rank queries, grouped experts"),
    "deepseek_v2-mlx": Case("deepseek_v2-mlx", "deepseek_v2", "DeepSeek-V2", "stacked experts, biases",
                            {"overrides": (("attention_bias", True),)}),
    "deepseek_v3": Case("deepseek_v3", "deepseek_v3", "DeepSeek-V3, V3.1, R1", "grouped sigmoid routing with a bias"),
    "deepseek_v3-mlx": Case("deepseek_v3-mlx", "deepseek_v3", "DeepSeek-V3", "embed_q and unembed_out, 4 bits",
                            {"format": "mlx", "bits": 4, "group_size": 32, "overrides": (("q_lora_rank", 64),)}),
    "glm4_moe": Case("glm4_moe", "glm4_moe", "GLM-4.5, 4.6, 4.7",
                     "norms on q and k, biases, rope on half of each head, sigmoid routing with a bias"),
    "glm4_moe-mlx": Case("glm4_moe-mlx", "glm4_moe", "GLM-4.5-Air", "stacked experts, 4 bits, no norms on q and k",
                         {"format": "mlx", "bits": 4, "group_size": 32}),
    "glm4_moe_lite": Case("glm4_moe_lite", "glm4_moe_lite", "GLM-4.7-Flash", "5 heads, values wider than keys"),
    "glm4_moe_lite-mlx": Case("glm4_moe_lite-mlx", "glm4_moe_lite", "GLM-4.7-Flash", "embed_q and unembed_out, unquantised"),
    "mistral": Case("mistral", "mistral", "Mistral 7B", "sliding windows in every layer",
                    oracle="mlx-lm's layers with Octavo's window mask (mlx-lm ignores `sliding_window`)"),
    "gemma2": Case("gemma2", "gemma2", "Gemma 2 2B, 9B, 27B", "sandwich norms, soft caps, sliding windows in every second layer",
                   oracle="mlx-lm's layers with Octavo's window mask (mlx-lm ignores `sliding_window`)"),
    "gemma3": Case("gemma3-text", "gemma3_text", "Gemma 3 1B", "norms on q and k, two rope bases, sliding windows in five of six layers"),
    "gemma3-multimodal": Case("gemma3", "gemma3", "Gemma 3 4B, 12B, 27B",
                              "the text part of a multimodal checkpoint, linear rope scaling in full-attention layers"),
    "gemma4": Case("gemma4-text", "gemma4_text", "Gemma 4 E2B, E4B",
                   "two head sizes, KV caches shared with earlier layers, per-layer inputs, layer scalars"),
    "gemma4-dense": Case("gemma4-dense", "gemma4_text", "Gemma 4 31B", "keys used as values in full-attention layers"),
    "gemma4-moe": Case("gemma4-moe", "gemma4_text", "Gemma 4 26B-A4B", "a dense MLP in parallel with experts"),
    "gemma4-multimodal": Case("gemma4", "gemma4", "Gemma 4", "the text part of a multimodal checkpoint"),
    "olmo2": Case("olmo2", "olmo2", "OLMo 2 7B to 32B", "norms after attention and MLP, q and k norms over all heads"),
    "olmo2-biases": Case("olmo2", "olmo2", "OLMo 2", "biases", {"overrides": (("attention_bias", True),)}),
    "olmo3": Case("olmo3", "olmo3", "OLMo 3", "sliding windows in three of four layers, yarn in the others"),
    "phi3": Case("phi3", "phi3", "Phi-3 mini, Phi-4", "fused q, k, v and fused gate and up matrices, sliding window",
                 oracle="mlx-lm's layers with Octavo's window mask (mlx-lm ignores `sliding_window`)"),
    "phi4-mini": Case("phi4-mini", "phi3", "Phi-3.5 mini, Phi-4 mini", "longrope on three quarters of each head, tied embeddings"),
    "phi4-mini-mlx": Case("phi4-mini", "phi3", "Phi-4 mini", "4 bits: fused quantised matrices are split",
                          {"format": "mlx", "bits": 4, "group_size": 32}),
    "granite": Case("granite", "granite", "Granite 3", "scales on embeddings, attention scores, residual branches and logits"),
    "granite-biases": Case("granite", "granite", "Granite 3", "biases",
                           {"overrides": (("attention_bias", True), ("mlp_bias", True))}),
    "glm4": Case("glm4", "glm4", "GLM-4-0414 9B, 32B", "norms before and after attention and MLP, interleaved rope on half of each head"),
    "mistral-layers": Case("mistral-mixed", "mistral", "Mistral with layer_types", "sliding windows in some layers"),
    "ministral3": Case("ministral3", "ministral3", "Ministral 3", "queries scaled by position, yarn, sliding windows"),
    "mistral3": Case("mistral3", "mistral3", "Ministral 3, multimodal", "the text part of a multimodal checkpoint"),
    "mistral3-small": Case("mistral3-small", "mistral3", "Mistral Small 3.1, 3.2", "Mistral as the text part"),
    "qwen2": Case("qwen2", "qwen2", "Qwen2, Qwen2.5", "biases on q, k, v"),
    "gpt_oss": Case("gpt_oss", "gpt_oss", "gpt-oss-20b, gpt-oss-120b", "attention sinks, a sliding window of 128, mxfp4 experts",
                    oracle="mlx-lm with yarn's ramp not rounded (mlx-lm ignores `truncate`)"),
    "gpt_oss-mlx": Case("gpt_oss-mlx", "gpt_oss", "gpt-oss", "stacked experts, unquantised"),
    "gpt_oss-mlx-mxfp4": Case("gpt_oss-mlx", "gpt_oss", "gpt-oss", "all weights in mxfp4",
                              {"format": "mlx", "mode": "mxfp4", "group_size": 32}),
    "mixtral": Case("mixtral", "mixtral", "Mixtral 8x7B, 8x22B", "softmax over the selected experts"),
    "mixtral-mlx": Case("mixtral-mlx", "mixtral", "Mixtral", "stacked experts",
                        # With seed 0, the scores of a token's second and third expert differ by 6e-7, below float32 precision.
                        {"format": "mlx", "group_size": 32, "seed": 1}),
    "qwen2_moe": Case("qwen2_moe", "qwen2_moe", "Qwen1.5-MoE, Qwen2-57B-A14B", "a gated shared expert"),
    "qwen2_moe-mlx": Case("qwen2_moe-mlx", "qwen2_moe", "Qwen2 MoE", "stacked experts"),
    "qwen3_moe": Case("qwen3_moe", "qwen3_moe", "Qwen3-30B-A3B, 235B-A22B", "layers with and without experts"),
    "qwen3_moe-mlx": Case("qwen3_moe-mlx", "qwen3_moe", "Qwen3 MoE", "stacked experts, 4 bits",
                          {"format": "mlx", "bits": 4, "group_size": 32}),
    "qwen3": Case("qwen3", "qwen3", "Qwen3 0.6B to 32B", "norms on q and k"),
    "qwen3.5": Case("qwen3.5", "qwen3_5", "Qwen3.5 0.8B to 27B", "the text part of a multimodal checkpoint, tied embeddings"),
    "qwen3.5-text": Case("qwen3.5-text", "qwen3_5_text", "Qwen3.5, text only", "attention biases, untied output"),
    "qwen3.5-mlx": Case("qwen3.5-mlx", "qwen3_5", "Qwen3.5, converted by mlx-lm",
                        "transposed convolution weights, norm weights with 1 added"),
    "qwen3.5-mlx-4bit": Case("qwen3.5-mlx", "qwen3_5", "Qwen3.5, quantised by mlx-lm", "4 bits in groups of 32",
                             {"format": "mlx", "group_size": 32}),
    "qwen3.5-moe": Case("qwen3.5-moe", "qwen3_5_moe", "Qwen3.5-35B-A3B, 122B-A10B", "experts and a gated shared expert"),
    "qwen3.5-moe-text": Case("qwen3.5-moe-text", "qwen3_5_moe_text", "Qwen3.5 with experts, text only"),
    "qwen3.5-moe-mlx": Case("qwen3.5-moe-mlx", "qwen3_5_moe", "Qwen3.5 with experts, converted by mlx-lm",
                            "stacked experts, 4 bits", {"format": "mlx", "group_size": 32}),
    "qwen3-next": Case("qwen3-next", "qwen3_next", "Qwen3-Next-80B-A3B", "projections interleaved by key head, experts"),
    "qwen3-next-dense": Case("qwen3-next-dense-mlx", "qwen3_next", "Qwen3-Next", "no experts, converted by mlx-lm"),
}
