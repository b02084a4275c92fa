"""Random LoRA adapters for a checkpoint, in PEFT's and mlx-lm's form, and PEFT's definition of what they do."""

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import mlx.core as mx
import numpy as np

from modelkit import oracle

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
ALL = (*ATTENTION, "gate_proj", "up_proj", "down_proj", "qkv_proj", "gate_up_proj")
ROUTERS = ("gate", "shared_expert_gate")
EXPERTS = ("gate_proj", "up_proj", "down_proj", "w1", "w2", "w3", "fc1", "fc2")
# Published names of an expert's matrices to mlx-lm's.
STACK_NAMES = {"w1": "gate_proj", "w3": "up_proj", "w2": "down_proj"}
TYPES = {"float32": mx.float32, "float16": mx.float16, "bfloat16": mx.bfloat16}


@dataclass(frozen=True)
class Adapter:
    form: str = "peft"  # or "mlx"
    rank: int = 8
    alpha: float = 16  # PEFT's lora_alpha, or mlx-lm's scale times the rank
    modules: tuple[str, ...] = ALL
    layers: tuple[int, ...] = ()  # empty: all
    rslora: bool = False
    rank_pattern: dict = field(default_factory=dict)
    alpha_pattern: dict = field(default_factory=dict)
    dtype: str = "float32"
    seed: int = 0
    size: float = 0.05  # standard deviation of the change of an output, relative to its input's
    dora: bool = False
    vocabulary: tuple[str, ...] = ()  # of "embed_tokens" and "lm_head"
    within: str = ""  # a regular expression: only modules whose name has it


def _stacked(shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Replaces the modules of all experts by mlx-lm's one: "experts.0.w1", "experts.1.w1", ... by "switch_mlp.gate_proj"."""
    found = {}
    for module, shape in shapes.items():
        if expert := re.fullmatch(r"(.*)\.experts\.(\d+)\.(\w+)", module):
            stack = f"{expert[1]}.switch_mlp.{STACK_NAMES.get(expert[3], expert[3])}"
            found[stack] = (max(int(expert[2]) + 1, found.get(stack, (0,))[0]), *shape)
        else:
            found[module] = shape
    return found


def linear_shapes(model: Path, adapter: Adapter) -> dict[str, tuple[int, ...]]:
    """Returns (outputs, inputs) of the modules that the adapter changes; (experts, outputs, inputs) of mlx-lm's experts."""
    found = {}
    for name, value in oracle.folder_weights(model).items():
        module = name.removesuffix(".weight")
        if module.split(".")[-1] in adapter.vocabulary:
            found[module] = value.shape
        layer = re.search(r"layers\.(\d+)\.", module)
        if (layer and module != name and value.ndim in (2, 3) and module.split(".")[-1] in adapter.modules
                and re.search(adapter.within, module) and (not adapter.layers or int(layer[1]) in adapter.layers)):
            found[module] = value.shape
    assert found
    return dict(sorted((_stacked(found) if adapter.form == "mlx" else found).items()))


def _value(pattern: dict, module: str, otherwise):
    return next((value for end, value in pattern.items() if module.endswith(end)), otherwise)


def rank_and_scale(adapter: Adapter, module: str) -> tuple[int, float]:
    rank = _value(adapter.rank_pattern, module, adapter.rank)
    alpha = _value(adapter.alpha_pattern, module, adapter.alpha)
    return rank, alpha / (math.sqrt(rank) if adapter.rslora else rank)


def make(folder: Path, model: Path, adapter: Adapter) -> Path:
    """Writes the adapter for the model and returns its folder."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(adapter.seed)
    tensors = {}
    weights = oracle.folder_weights(model) if adapter.dora else {}
    for module, (*experts, outputs, inputs) in linear_shapes(model, adapter).items():
        rank, scale = rank_and_scale(adapter, module)
        a = random.standard_normal((*experts, rank, inputs)) / np.sqrt(inputs)
        b = random.standard_normal((*experts, outputs, rank)) * adapter.size / (scale * np.sqrt(rank))
        if module.endswith("embed_tokens"):  # as a matrix [vocabulary, hidden], A and B change places
            a, b = b.T, a.T
        if experts:
            halves = {f"{module}.lora_a": a, f"{module}.lora_b": b}
        elif adapter.form == "mlx":
            halves = {f"{module}.lora_a": a.T, f"{module}.lora_b": b.T}
        elif module.endswith("embed_tokens"):
            halves = {f"base_model.model.{module}.lora_embedding_A": a, f"base_model.model.{module}.lora_embedding_B": b}
        else:
            halves = {f"base_model.model.{module}.lora_A.weight": a, f"base_model.model.{module}.lora_B.weight": b}
        if adapter.dora:
            lengths = np.linalg.norm(np.array(weights[f"{module}.weight"]), axis=1)
            name = f"{module}.m" if adapter.form == "mlx" else f"base_model.model.{module}.lora_magnitude_vector"
            halves[name] = lengths * random.uniform(0.8, 1.2, outputs)
        for name, half in halves.items():
            tensors[name] = mx.contiguous(mx.array(half.astype(np.float32)).astype(TYPES[adapter.dtype]))
    name = "adapters.safetensors" if adapter.form == "mlx" else "adapter_model.safetensors"
    mx.save_safetensors(str(folder / name), tensors)
    (folder / "adapter_config.json").write_text(json.dumps(config_of(model, adapter), indent=2))
    return folder


def config_of(model: Path, adapter: Adapter) -> dict:
    if adapter.form == "mlx":
        names = sorted({module if module.split(".")[-1] in adapter.vocabulary
                        else re.sub(r"^.*?layers\.\d+\.", "", module)
                        for module in linear_shapes(model, adapter)})
        return {"fine_tune_type": "dora" if adapter.dora else "lora", "num_layers": -1, "model": "tiny",
                "lora_parameters": {"rank": adapter.rank, "scale": adapter.alpha / adapter.rank, "dropout": 0.0,
                                    "keys": names}}
    return {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "tiny", "inference_mode": True,
            "r": adapter.rank, "lora_alpha": adapter.alpha, "use_rslora": adapter.rslora, "use_dora": adapter.dora,
            "lora_dropout": 0.05, "bias": "none", "modules_to_save": None, "fan_in_fan_out": False,
            "rank_pattern": adapter.rank_pattern, "alpha_pattern": adapter.alpha_pattern,
            "target_modules": [*adapter.modules, *adapter.vocabulary], "init_lora_weights": True}


def merged_weights(model: Path, folder: Path, adapter: Adapter) -> dict[str, np.ndarray]:
    """Returns the model's weights with PEFT's definition applied: W + scale * B A; DoRA gives the rows of this their lengths."""
    weights = {name: np.array(value) for name, value in oracle.folder_weights(model).items()}
    tensors = mx.load(str(folder / "adapter_model.safetensors"))
    for module in linear_shapes(model, adapter):
        end = "lora_embedding_{}" if module.endswith("embed_tokens") else "lora_{}.weight"
        a, b = (np.array(tensors[f"base_model.model.{module}." + end.format(half)].astype(mx.float32)).astype(np.float64)
                for half in "AB")
        if module.endswith("embed_tokens"):
            a, b = b.T, a.T
        _, scale = rank_and_scale(adapter, module)
        merged = weights[f"{module}.weight"] + scale * b @ a
        if adapter.dora:
            lengths = np.array(tensors[f"base_model.model.{module}.lora_magnitude_vector"].astype(mx.float32))
            merged *= (lengths / np.linalg.norm(merged, axis=1))[:, None]
        weights[f"{module}.weight"] = merged.astype(np.float32)
    return weights
