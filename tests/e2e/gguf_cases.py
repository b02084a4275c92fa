"""All tested GGUF architectures, as data: the checkpoint that is converted, and the families that run it.

test_gguf_architectures.py runs them, and tools/models_table.py takes a column of docs/models.md from them."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class GgufCase:
    arch: str  # general.architecture
    family: str  # modelkit's name of the checkpoint in Hugging Face's form
    model_types: tuple[str, ...]  # of the families whose models are distributed with this architecture
    overrides: dict = field(default_factory=dict)  # keys of config.json, where llama.cpp implies a value
    recipe: dict = field(default_factory=dict)  # additional fields of modelkit.Recipe
    tolerance: float | None = 1e-4  # largest difference from llama.cpp's logits; None: not compared
    uses_gelu: bool = False

    @property
    def fields(self) -> dict:
        """The fields of the recipe."""
        return self.recipe | ({"overrides": tuple(self.overrides.items())} if self.overrides else {})


# llama.cpp's delta rule requires heads of one size.
DELTA = {"linear_value_head_dim": 32}
# llama.cpp ignores the window of Phi-3.
PHI3 = {"sliding_window": 0}
GEMMA4 = ("gemma4", "gemma4_text")
# llama.cpp computes GELU from a table in half precision.
GELU = {"tolerance": 5e-3, "uses_gelu": True}
# The inputs per layer and the choice of experts enlarge these errors to 0.02, so that single tokens differ. Files with gates that
# GELU does not round (test_gelu_is_the_only_difference) show that nothing else differs.
ENLARGED_GELU = {"tolerance": None, "uses_gelu": True}
# llama.cpp normalises the groups of Mamba-2's values separately, Granite together; it has no biases of Mamba-2's projections.
GRANITE_4 = {"mamba_n_groups": 1, "mamba_proj_bias": False}
CASES = {
    "llama": GgufCase("llama", "llama", ("llama", "mistral", "mixtral")),
    "smollm2": GgufCase("llama", "smollm2", ("llama",)),
    "smollm3": GgufCase("smollm3", "smollm3", ("smollm3",)),
    "qwen2": GgufCase("qwen2", "qwen2", ("qwen2",)),
    "qwen3": GgufCase("qwen3", "qwen3", ("qwen3",)),
    "qwen3moe": GgufCase("qwen3moe", "qwen3_moe", ("qwen3_moe",), {"mlp_only_layers": ()}),
    "qwen3vl": GgufCase("qwen3vl", "qwen3", ("qwen3",)),
    "qwen3vlmoe": GgufCase("qwen3vlmoe", "qwen3_moe", ("qwen3_moe",), {"mlp_only_layers": ()}),
    "granite": GgufCase("granite", "granite", ("granite",)),
    "granite-4": GgufCase("granite", "granitemoehybrid-dense", ("granitemoehybrid",),
                          GRANITE_4 | {"layer_types": ("attention",) * 5}),
    "granitehybrid": GgufCase("granitehybrid", "granitemoehybrid", ("granitemoehybrid",)),
    "granitehybrid-dense": GgufCase("granitehybrid", "granitemoehybrid-dense", ("granitemoehybrid",), GRANITE_4),
    # A file has experts or MLPs.
    "nemotron_h": GgufCase("nemotron_h", "nemotron_h", ("nemotron_h",), {"hybrid_override_pattern": "M-M*-MM*"}),
    "nemotron_h_moe": GgufCase("nemotron_h_moe", "nemotron_h", ("nemotron_h",), {"hybrid_override_pattern": "MEM*EMM*"}),
    "mistral3": GgufCase("mistral3", "ministral3", ("ministral3", "mistral3"),
                         {"sliding_window": None, "layer_types": ("full_attention",) * 4}),
    "qwen35": GgufCase("qwen35", "qwen3.5-text", ("qwen3_5", "qwen3_5_text"), DELTA | {"attention_bias": False}),
    # With seed 0, the logits of mlx-lm itself change by 2e-4 if the last bits of the weights change.
    "qwen35moe": GgufCase("qwen35moe", "qwen3.5-moe-text", ("qwen3_5_moe", "qwen3_5_moe_text"), DELTA, {"seed": 4}),
    "qwen3next": GgufCase("qwen3next", "qwen3-next", ("qwen3_next",), DELTA | {"mlp_only_layers": ()}),
    "gemma2": GgufCase("gemma2", "gemma2", ("gemma2",), {"query_pre_attn_scalar": 32}, **GELU),
    "gemma3": GgufCase("gemma3", "gemma3-text", ("gemma3", "gemma3_text"), {"query_pre_attn_scalar": 32}, **GELU),
    "gemma4": GgufCase("gemma4", "gemma4-text", GEMMA4, **ENLARGED_GELU),
    "gemma4-dense": GgufCase("gemma4", "gemma4-dense", GEMMA4, **GELU),
    "gemma4-moe": GgufCase("gemma4", "gemma4-moe", GEMMA4, **ENLARGED_GELU),
    "gpt-oss": GgufCase("gpt-oss", "gpt_oss-mlx", ("gpt_oss",)),
    # llama.cpp expects low-rank queries unless the model has the number of layers of V2-Lite.
    "deepseek2": GgufCase("deepseek2", "deepseek_v2", ("deepseek_v2",), {
        "n_group": 1, "topk_group": 1, "topk_method": "greedy", "routed_scaling_factor": 1.0}),
    "deepseek2-v3": GgufCase("deepseek2", "deepseek_v3", ("deepseek_v3",)),
    "deepseek2-glm": GgufCase("deepseek2", "glm4_moe_lite", ("glm4_moe_lite",)),
    "phi3": GgufCase("phi3", "phi3", ("phi3",), PHI3),
    "phi4-mini": GgufCase("phi3", "phi4-mini", ("phi3",), PHI3),
    "lfm2": GgufCase("lfm2", "lfm2", ("lfm2",)),
    # Its scale of the experts' weights is implied.
    "lfm2moe": GgufCase("lfm2moe", "lfm2_moe", ("lfm2_moe",), {"routed_scaling_factor": 1.0}),
    "glm4moe": GgufCase("glm4moe", "glm4_moe", ("glm4_moe",)),
    "glm4": GgufCase("glm4", "glm4", ("glm4",)),
    "olmo2": GgufCase("olmo2", "olmo2", ("olmo2",)),
    "olmo3": GgufCase("olmo2", "olmo3", ("olmo3",)),
    # Its scales are implied. With this context, longrope has no magnitude.
    "minicpm3": GgufCase("minicpm3", "minicpm3", ("minicpm3",), {"dim_model_base": 256, "max_position_embeddings": 1024}),
}
