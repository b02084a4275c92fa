"""Families that are more than Llama with switches: one file each, found here by being there.

A file has FAMILIES = {name: CustomFamily(...)}. A config is the whole of config.json but the keys in COMMON, and the
tensors follow from the config alone."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field

from ..tensor import TensorList

COMMON = {"bos_token_id": 0, "eos_token_id": 2, "initializer_range": 0.02, "attention_dropout": 0.0, "use_cache": True}


@dataclass(frozen=True)
class CustomFamily:
    about: str
    tiny: dict  # config.json with every switch of the real one and its shape's ratios; a vocabulary of 512
    tensors: Callable[[dict], TensorList]
    shapes: dict[str, dict] = field(default_factory=dict)  # real models: what differs from tiny
    pre: str = "qwen2"  # the tokenizer's pre-tokenizer


def text_config(config: dict) -> dict:
    """The language model's part of a config that has others beside it."""
    return config.get("text_config", config)


def _collect() -> dict[str, CustomFamily]:
    found: dict[str, CustomFamily] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        found |= getattr(importlib.import_module(f"{__name__}.{module}"), "FAMILIES", {})
    return found


FAMILIES = _collect()
SHAPES = {shape: name for name, family in FAMILIES.items() for shape in family.shapes}


def config_of(name: str, shape: str, dtype: str, overrides: dict) -> dict:
    """config.json. A null in `overrides` takes a key away."""
    family = FAMILIES[name]
    changes = (family.shapes[shape] if shape in family.shapes else {}) | overrides
    config = COMMON | family.tiny | {"torch_dtype": dtype}
    if "text_config" in config:
        config["text_config"] = {**config["text_config"], **changes}
        return config
    return {k: v for k, v in (config | changes).items() if v is not None or k in family.tiny}
