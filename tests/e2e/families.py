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
    "qwen2": Case("qwen2", "qwen2", "Qwen2, Qwen2.5", "biases on q, k, v"),
    "qwen3": Case("qwen3", "qwen3", "Qwen3 0.6B to 32B", "norms on q and k"),
    "qwen3.5": Case("qwen3.5", "qwen3_5", "Qwen3.5 0.8B to 27B", "a text part beside others, tied"),
    "qwen3.5-text": Case("qwen3.5-text", "qwen3_5", "Qwen3.5, text only", "biases on attention, output not tied"),
    "qwen3.5-mlx": Case("qwen3.5-mlx", "qwen3_5", "Qwen3.5, converted by mlx-lm", "turned convolutions, norms with one"),
    "qwen3.5-mlx-4bit": Case("qwen3.5-mlx", "qwen3_5", "Qwen3.5, quantised by mlx-lm", "4 bits in groups of 32",
                             {"format": "mlx", "group_size": 32}),
    "qwen3-next-dense": Case("qwen3-next-dense-mlx", "qwen3_next", "Qwen3-Next", "projections joined by key head"),
}
