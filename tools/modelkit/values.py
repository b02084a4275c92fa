"""The tensors of a model and their random values.

Small tensors are drawn element by element. A large tensor repeats a pool of encoded blocks. The number of blocks is
prime, so that neighbouring rows differ; writing is as fast as the disk.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .recipe import Recipe, hf_config
from .tensor import Tensor, TensorList

DRAWN_ELEMENTS = 1 << 18  # larger tensors take their values from a pool
POOL_ELEMENTS = 1 << 22
PRIMES = (4194301, 1048573, 262139, 131071, 65521, 32749, 16381, 8191)  # pool sizes in blocks


def tensors(recipe: Recipe) -> list[Tensor]:
    """Returns every tensor in file order. Standard deviations are chosen so that logits have a standard deviation of about
    one and layers add little to the residual, so that quantisation does not change the output too much."""
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
    """Encodes float32 [rows, columns] as one or more arrays [rows, ...]; columns are encoded in blocks of `block`."""

    key: str
    block: int
    encode: Callable[[np.ndarray], tuple[np.ndarray, ...]]


class ValueSource:
    """Encoded random values of tensors. Holds at most one pool per encoder and standard deviation."""

    def __init__(self, seed: int):
        self._seed = seed
        self._pools: dict[tuple, list[np.ndarray]] = {}

    def draw(self, tensor: Tensor) -> np.ndarray:
        """Returns the values of a small tensor, which are the same in every format."""
        rng = np.random.default_rng([self._seed, zlib.crc32(tensor.name.encode())])
        values = np.asarray(rng.standard_normal(tensor.shape or 1, np.float32)).reshape(tensor.shape)
        return np.asarray(values * np.float32(tensor.std) + np.float32(tensor.mean))

    def is_pooled(self, tensor: Tensor) -> bool:
        return tensor.elements > DRAWN_ELEMENTS

    def pieces(self, tensor: Tensor, encoder: Encoder, output: int = 0,
               change: Callable[[np.ndarray], np.ndarray] = lambda x: x) -> Iterator[memoryview]:
        """Yields one of the encoder's outputs in pieces, in file order. `change` reorders the rows of a drawn tensor; it is not
        applied to pooled tensors, whose row order has no meaning."""
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
    """Yields `blocks` rows of the pool from `start` on, wrapping around."""
    count = len(pool)
    turn = np.concatenate([pool[start % count:], pool[:start % count]])
    while blocks > 0:
        piece = turn[:blocks]
        yield memoryview(piece).cast("B")
        blocks -= len(piece)
