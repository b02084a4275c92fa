"""Every family that is tested, as data: what is made, what it stands for and what it is compared with.

test_families.py runs them, and docs/models.md is made from them (tools/models_table.py)."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One tiny checkpoint: a recipe of tools/modelkit and the switches it shows."""

    family: str  # of modelkit
    model_type: str  # of config.json
    stands_for: str  # models people know
    shows: str = ""  # what this case has and others lack
    recipe: dict = field(default_factory=dict)  # further fields of modelkit.Recipe
    oracle: str = "mlx-lm"  # or what else, said so


CASES = {
    "lfm2": Case("lfm2", "lfm2", "LFM2", "short convolutions, attention in some layers"),
    "llama": Case("llama", "llama", "Llama 2, 3, 3.1", "llama3 rope scaling"),
    "llama-biases": Case("llama", "llama", "Llama", "biases", {"biases": True}),
    "llama-tied": Case("llama-tied", "llama", "Llama 3.2", "tied embeddings"),
    "smollm2": Case("smollm2", "llama", "SmolLM2", "9 heads, 3 KV heads"),
    "smollm3": Case("smollm3", "smollm3", "SmolLM3", "layers without rope"),
    "minicpm3": Case("minicpm3", "minicpm3", "MiniCPM3 4B", "latent attention; scales on embeddings, layers, logits"),
    "minicpm3-biases": Case("minicpm3", "minicpm3", "MiniCPM3", "biases", {"overrides": (("attention_bias", True),)}),
    "mistral": Case("mistral", "mistral", "Mistral 7B", "a window in every layer",
                    oracle="mlx-lm's layers with our window mask (it ignores sliding_window)"),
    "qwen2": Case("qwen2", "qwen2", "Qwen2, Qwen2.5", "biases on q, k, v"),
    "gpt_oss": Case("gpt_oss", "gpt_oss", "gpt-oss-20b, gpt-oss-120b", "sinks, a window of 128, mxfp4 experts",
                    oracle="mlx-lm with yarn's ramp unrounded (it ignores truncate)"),
    "gpt_oss-mlx": Case("gpt_oss-mlx", "gpt_oss", "gpt-oss", "experts stacked, dense"),
    "gpt_oss-mlx-mxfp4": Case("gpt_oss-mlx", "gpt_oss", "gpt-oss", "all in mxfp4",
                              {"format": "mlx", "mode": "mxfp4", "group_size": 32}),
    "mixtral": Case("mixtral", "mixtral", "Mixtral 8x7B, 8x22B", "experts weighed by softmax over the chosen"),
    "mixtral-mlx": Case("mixtral-mlx", "mixtral", "Mixtral", "experts stacked", {"format": "mlx", "group_size": 32}),
    "qwen2_moe": Case("qwen2_moe", "qwen2_moe", "Qwen1.5-MoE, Qwen2-57B-A14B", "a gated shared expert"),
    "qwen2_moe-mlx": Case("qwen2_moe-mlx", "qwen2_moe", "Qwen2 MoE", "experts stacked"),
    "qwen3_moe": Case("qwen3_moe", "qwen3_moe", "Qwen3-30B-A3B, 235B-A22B", "experts, and layers without"),
    "qwen3_moe-mlx": Case("qwen3_moe-mlx", "qwen3_moe", "Qwen3 MoE", "experts stacked, 4 bits",
                          {"format": "mlx", "bits": 4, "group_size": 32}),
    "qwen3": Case("qwen3", "qwen3", "Qwen3 0.6B to 32B", "norms on q and k"),
}
