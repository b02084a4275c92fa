"""Creates checkpoints with random weights in every format that Octavo reads. Used by tools/make_model.py and the tests."""

from . import recipes
from .build import make
from .recipe import FAMILIES, GGUF_TYPES, SHAPES, Recipe

__all__ = ["FAMILIES", "GGUF_TYPES", "SHAPES", "Recipe", "make", "recipes"]
