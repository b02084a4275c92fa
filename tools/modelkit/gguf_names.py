"""Converts tensor names and layouts between HF and llama.cpp, in both directions."""

import math
import re

import numpy as np

BLOCK = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
_BLOCK_BACK = {short: long for long, short in BLOCK.items()}
_TOP_BACK = {short: long for long, short in TOP.items()}


def to_gguf(name: str) -> str:
    module, _, leaf = name.rpartition(".")
    if match := re.fullmatch(r"model\.layers\.(\d+)\.(.+)", module):
        return f"blk.{match[1]}.{BLOCK[match[2]]}.{leaf}"
    return f"{TOP[module]}.{leaf}"


def from_gguf(name: str) -> str:
    module, _, leaf = name.rpartition(".")
    if match := re.fullmatch(r"blk\.(\d+)\.(.+)", module):
        return f"model.layers.{match[1]}.{_BLOCK_BACK[match[2]]}.{leaf}"
    return f"{_TOP_BACK[module]}.{leaf}"


def permute(rows: np.ndarray, heads: int) -> np.ndarray:
    """HF stores the two rotary halves of a head separately; llama.cpp's llama interleaves them. rows: [heads * head_dim, ...]."""
    return rows.reshape(heads, 2, len(rows) // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def unpermute(rows: np.ndarray, heads: int) -> np.ndarray:
    return rows.reshape(heads, len(rows) // heads // 2, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def rotary_heads(name: str, heads: int, kv_heads: int) -> int | None:
    """Returns the number of heads of a permuted tensor (HF name), or None for other tensors."""
    if ".q_proj." in name:
        return heads
    return kv_heads if ".k_proj." in name else None


def llama3_factors(scaling: dict, theta: float, head_dim: int) -> np.ndarray:
    """Returns rope_freqs.weight, the divisor of each pair's frequency: float32 [head_dim / 2]."""
    factor, low, high = scaling["factor"], scaling["low_freq_factor"], scaling["high_freq_factor"]
    original = scaling["original_max_position_embeddings"]
    factors = []
    for i in range(0, head_dim, 2):
        wave = 2 * math.pi * theta ** (i / head_dim)
        if wave < original / high:
            factors.append(1.0)
        elif wave > original / low:
            factors.append(factor)
        else:
            smooth = (original / wave - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(factors, np.float32)
