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
    "llama": Case("llama", "llama", "Llama 2, 3, 3.1", "llama3 rope scaling"),
    "llama-biases": Case("llama", "llama", "Llama", "biases", {"biases": True}),
    "llama-tied": Case("llama-tied", "llama", "Llama 3.2", "tied embeddings"),
    "smollm2": Case("smollm2", "llama", "SmolLM2", "9 heads, 3 KV heads"),
    "smollm3": Case("smollm3", "smollm3", "SmolLM3", "layers without rope"),
    "mistral": Case("mistral", "mistral", "Mistral 7B", "a window in every layer",
                    oracle="mlx-lm's layers with our window mask (it ignores sliding_window)"),
    "gemma2": Case("gemma2", "gemma2", "Gemma 2 2B, 9B, 27B", "sandwich norms, soft caps, windows in every second layer",
                   oracle="mlx-lm's layers with our window mask (it ignores sliding_window)"),
    "gemma3": Case("gemma3-text", "gemma3_text", "Gemma 3 1B", "norms on q and k, two ropes, windows in five of six layers"),
    "gemma3-multimodal": Case("gemma3", "gemma3", "Gemma 3 4B, 12B, 27B",
                              "the text part of a multimodal checkpoint, linear rope scaling on full layers"),
    "qwen2": Case("qwen2", "qwen2", "Qwen2, Qwen2.5", "biases on q, k, v"),
    "qwen3": Case("qwen3", "qwen3", "Qwen3 0.6B to 32B", "norms on q and k"),
}
