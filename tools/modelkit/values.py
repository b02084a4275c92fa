"""The tensors of a model and their random values.

Small tensors are drawn element by element. A large one repeats a pool of already encoded blocks whose count is
prime, so that neighbouring rows differ and writing runs at the speed of the disk.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .recipe import Recipe, hf_config
from .tensor import Tensor, TensorList

DRAWN_ELEMENTS = 1 << 18  # a larger tensor takes its values from a pool
POOL_ELEMENTS = 1 << 22
PRIMES = (4194301, 1048573, 262139, 131071, 65521, 32749, 16381, 8191)  # pool sizes in blocks


def tensors(recipe: Recipe) -> list[Tensor]:
    """Every tensor in file order. Spreads are chosen so that logits have a spread of about one, and
    layers add little enough to the residual for quantisation to leave the answer recognisable."""
    if recipe.custom:
        return recipe.custom.tensors(hf_config(recipe))
    size, family = recipe.size, recipe.kind
    q_rows, kv_rows = size.heads * recipe.head_size, size.kv_heads * recipe.head_size
    found = TensorList()
    qkv_bias = 0.5 if family.qkv_bias or recipe.biases else 0.0
    other_bias = 0.2 if recipe.biases else 0.0
    found.linear("model.embed_tokens", size.vocab, size.hidden)
    for layer in range(size.layers):
        at = f"model.layers.{layer}"
        found.norm(f"{at}.input_layernorm", size.hidden)
        found.linear(f"{at}.self_attn.q_proj", q_rows, size.hidden, qkv_bias)
        found.linear(f"{at}.self_attn.k_proj", kv_rows, size.hidden, qkv_bias)
        found.linear(f"{at}.self_attn.v_proj", kv_rows, size.hidden, qkv_bias)
        if family.qk_norm:
            found.norm(f"{at}.self_attn.q_norm", recipe.head_size)
            found.norm(f"{at}.self_attn.k_norm", recipe.head_size)
        found.linear(f"{at}.self_attn.o_proj", size.hidden, q_rows, other_bias, 0.2)
        found.norm(f"{at}.post_attention_layernorm", size.hidden)
        found.linear(f"{at}.mlp.gate_proj", size.ffn, size.hidden, other_bias)
        found.linear(f"{at}.mlp.up_proj", size.ffn, size.hidden, other_bias)
        found.linear(f"{at}.mlp.down_proj", size.hidden, size.ffn, other_bias, 0.2)
    found.norm("model.norm", size.hidden)
    if not recipe.is_tied:
        found.linear("lm_head", size.vocab, size.hidden)
    return found


@dataclass(frozen=True)
class Encoder:
    """Turns float32 [rows, columns] into one or more arrays [rows, ...]; columns go in blocks of `block`."""

    key: str
    block: int
    encode: Callable[[np.ndarray], tuple[np.ndarray, ...]]


class ValueSource:
    """Random values by tensor, encoded. Holds at most one pool per encoder and spread."""

    def __init__(self, seed: int):
        self._seed = seed
        self._pools: dict[tuple, list[np.ndarray]] = {}

    def draw(self, tensor: Tensor) -> np.ndarray:
        """The values of a small tensor, the same in every format."""
        rng = np.random.default_rng([self._seed, zlib.crc32(tensor.name.encode())])
        return rng.standard_normal(tensor.shape, np.float32) * np.float32(tensor.std) + np.float32(tensor.mean)

    def is_pooled(self, tensor: Tensor) -> bool:
        return tensor.elements > DRAWN_ELEMENTS

    def pieces(self, tensor: Tensor, encoder: Encoder, output: int = 0,
               change: Callable[[np.ndarray], np.ndarray] = lambda x: x) -> Iterator[memoryview]:
        """One of the encoder's outputs, as pieces to write one after the other. `change` reorders the rows of a drawn
        tensor; a pooled one has no order worth keeping."""
        if self.is_pooled(tensor):
            start = zlib.crc32(tensor.name.encode())
            yield from _repeat(self._pool(tensor, encoder)[output], tensor.elements // encoder.block, start)
        else:
            yield memoryview(np.ascontiguousarray(encoder.encode(change(self.draw(tensor)))[output])).cast("B")

    def _pool(self, tensor: Tensor, encoder: Encoder) -> list[np.ndarray]:
        key = (encoder.key, tensor.mean, tensor.std)
        if key not in self._pools:
            count = next(p for p in PRIMES if p * encoder.block <= POOL_ELEMENTS)
            rng = np.random.default_rng([self._seed, 1])
            values = rng.standard_normal((count, encoder.block), np.float32)
            values = values * np.float32(tensor.std) + np.float32(tensor.mean)
            self._pools[key] = [part.reshape(count, -1) for part in encoder.encode(values)]
        return self._pools[key]


def _repeat(pool: np.ndarray, blocks: int, start: int) -> Iterator[memoryview]:
    """`blocks` rows of the pool, going round from `start`."""
    count = len(pool)
    turn = np.concatenate([pool[start % count:], pool[:start % count]])
    while blocks > 0:
        piece = turn[:blocks]
        yield memoryview(piece).cast("B")
        blocks -= len(piece)
