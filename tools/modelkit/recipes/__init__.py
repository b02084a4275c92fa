"""Families that differ from Llama by more than options: one file each. All files in this folder are loaded.

A file defines FAMILIES = {name: CustomFamily(...)}. A config is the whole of config.json except the keys in COMMON, and
determines the tensors."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field

from ..tensor import TensorList

COMMON = {"bos_token_id": 0, "eos_token_id": 2, "initializer_range": 0.02, "attention_dropout": 0.0, "use_cache": True}


@dataclass(frozen=True)
class CustomFamily:
    about: str
    tiny: dict  # config.json with all options and the size ratios of the real one; a vocabulary of 512
    tensors: Callable[[dict], TensorList]
    shapes: dict[str, dict] = field(default_factory=dict)  # real models: differences from tiny
    pre: str = "qwen2"  # the tokenizer's pre-tokenizer
    specials: tuple[str, ...] = ()  # added to the tokenizer after its own vocabulary
    chat_template: str | None = None  # None: one of text only
    # preprocessor_config.json, or processor_config.json if it has the key image_processor
    processor: dict | None = None


def text_config(config: dict) -> dict:
    """Returns the language model's section of a config that also has other sections."""
    return config.get("text_config", config)


def _collect() -> dict[str, CustomFamily]:
    found: dict[str, CustomFamily] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        found |= getattr(importlib.import_module(f"{__name__}.{module}"), "FAMILIES", {})
    return found


FAMILIES = _collect()
SHAPES = {shape: name for name, family in FAMILIES.items() for shape in family.shapes}


def config_of(name: str, shape: str, dtype: str, overrides: dict) -> dict:
    """Returns config.json. A null in `overrides` removes a key."""
    family = FAMILIES[name]
    changes = (family.shapes[shape] if shape in family.shapes else {}) | overrides
    config = COMMON | family.tiny | {"torch_dtype": dtype}
    if "text_config" in config:
        config["text_config"] = {**config["text_config"], **changes}
        return config
    return {k: v for k, v in (config | changes).items() if v is not None or k in family.tiny}
