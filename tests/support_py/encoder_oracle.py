"""Encoders and the heads of cross-encoders in NumPy, in float64 from a checkpoint's safetensors: vectors and scores of token ids.

Independent of Octavo's plans: names and formulas are those of transformers' models, and of Nomic's own code."""

import json
import math
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

_erf = np.vectorize(math.erf)


def gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + _erf(x / math.sqrt(2))) / 2


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def rotated(x: np.ndarray, theta: float) -> np.ndarray:
    """x: [tokens, heads, dims]."""
    dims = x.shape[-1]
    angles = np.arange(len(x))[:, None] / theta ** (np.arange(0, dims, 2) / dims)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    one, two = x[..., : dims // 2], x[..., dims // 2 :]
    return np.concatenate([one * cos - two * sin, two * cos + one * sin], -1)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, reach: int | None = None) -> np.ndarray:
    """Over all tokens, or those at most `reach` away. Each is [tokens, heads, dims]; returns [tokens, heads * dims]."""
    scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[-1])
    if reach is not None:
        places = np.arange(len(q))
        scores = np.where(np.abs(places[:, None] - places) <= reach, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("hqk,khd->qhd", weights, v).reshape(len(q), -1)


class Encoder:
    """A checkpoint folder. `rows`, `vector` and `score` compute one prompt alone."""

    def __init__(self, folder: Path):
        self.config = json.loads((folder / "config.json").read_text())
        self.tensors = {k: v.astype(np.float64) for k, v in load_file(folder / "model.safetensors").items()}
        self.kind = self.config["model_type"]
        first = next(name for name in self.tensors if "embeddings.norm" in name or "word_embeddings" in name)
        self.prefix = first[: first.index("embeddings.")]

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.tensors[f"{name}.weight"].T + self.tensors.get(f"{name}.bias", 0)

    def _norm(self, x: np.ndarray, name: str, eps: float) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
        return scaled * self.tensors[f"{name}.weight"] + self.tensors.get(f"{name}.bias", 0)

    def rows(self, tokens: list[int], second_text: int = 0) -> np.ndarray:
        """Returns [tokens, hidden]. Tokens from `second_text` on, if it is not 0, are of type 1."""
        types = np.array([int(second_text > 0 and i >= second_text) for i in range(len(tokens))])
        if self.kind == "modernbert":
            return self._modernbert(tokens)
        return self._nomic(tokens, types) if self.kind == "nomic_bert" else self._bert(tokens, types)

    def _bert(self, tokens: list[int], types: np.ndarray) -> np.ndarray:
        config, at = self.config, f"{self.prefix}embeddings."
        eps, heads, count = config["layer_norm_eps"], config["num_attention_heads"], len(tokens)
        first = config["pad_token_id"] + 1 if "roberta" in self.kind else 0
        if config["type_vocab_size"] == 1:
            types = np.zeros_like(types)
        x = (
            self.tensors[f"{at}word_embeddings.weight"][tokens]
            + self.tensors[f"{at}token_type_embeddings.weight"][types]
            + self.tensors[f"{at}position_embeddings.weight"][first : first + count]
        )
        x = self._norm(x, f"{at}LayerNorm", eps)
        for layer in range(config["num_hidden_layers"]):
            at = f"{self.prefix}encoder.layer.{layer}"
            q, k, v = (
                self._linear(x, f"{at}.attention.self.{each}").reshape(count, heads, -1) for each in ("query", "key", "value")
            )
            x = self._norm(
                x + self._linear(attention(q, k, v), f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm", eps
            )
            inner = gelu(self._linear(x, f"{at}.intermediate.dense"))
            x = self._norm(x + self._linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm", eps)
        return x

    def _nomic(self, tokens: list[int], types: np.ndarray) -> np.ndarray:
        config, eps = self.config, self.config["layer_norm_epsilon"]
        x = (
            self.tensors["embeddings.word_embeddings.weight"][tokens]
            + self.tensors["embeddings.token_type_embeddings.weight"][types]
        )
        x = self._norm(x, "emb_ln", eps)
        for layer in range(config["n_layer"]):
            at = f"encoder.layers.{layer}"
            q, k, v = self._qkv(x, f"{at}.attn.Wqkv", config["n_head"])
            theta = config["rotary_emb_base"]
            mixed = attention(rotated(q, theta), rotated(k, theta), v)
            x = self._norm(x + self._linear(mixed, f"{at}.attn.out_proj"), f"{at}.norm1", eps)
            inner = self._linear(x, f"{at}.mlp.fc11") * silu(self._linear(x, f"{at}.mlp.fc12"))
            x = self._norm(x + self._linear(inner, f"{at}.mlp.fc2"), f"{at}.norm2", eps)
        return x

    def _qkv(self, x: np.ndarray, name: str, heads: int) -> list[np.ndarray]:
        return [part.reshape(len(x), heads, -1) for part in np.split(self._linear(x, name), 3, -1)]

    def _modernbert(self, tokens: list[int]) -> np.ndarray:
        config, eps = self.config, self.config["norm_eps"]
        x = self._norm(
            self.tensors[f"{self.prefix}embeddings.tok_embeddings.weight"][tokens], f"{self.prefix}embeddings.norm", eps
        )
        for layer in range(config["num_hidden_layers"]):
            at = f"{self.prefix}layers.{layer}"
            is_global = layer % config["global_attn_every_n_layers"] == 0
            theta = config["global_rope_theta" if is_global else "local_rope_theta"]
            q, k, v = self._qkv(
                self._norm(x, f"{at}.attn_norm", eps) if layer > 0 else x, f"{at}.attn.Wqkv", config["num_attention_heads"]
            )
            reach = None if is_global else config["local_attention"] // 2
            x = x + self._linear(attention(rotated(q, theta), rotated(k, theta), v, reach), f"{at}.attn.Wo")
            value, gate = np.split(self._linear(self._norm(x, f"{at}.mlp_norm", eps), f"{at}.mlp.Wi"), 2, -1)
            x = x + self._linear(gelu(value) * gate, f"{at}.mlp.Wo")
        return self._norm(x, f"{self.prefix}final_norm", eps)

    def vector(self, tokens: list[int], pooling: str = "first", normalize: bool = True) -> np.ndarray:
        """`pooling`: "first", "mean" or "last"."""
        rows = self.rows(tokens)
        found = {"first": rows[0], "last": rows[-1], "mean": rows.mean(0)}[pooling]
        return found / np.linalg.norm(found) if normalize else found

    def logits(self, tokens: list[int], second_text: int = 0) -> np.ndarray:
        """Of a cross-encoder: one per label."""
        rows = self.rows(tokens, second_text)
        if self.kind == "modernbert":
            pooled = rows.mean(0) if self.config["classifier_pooling"] == "mean" else rows[0]
            inner = self._norm(gelu(self._linear(pooled, "head.dense")), "head.norm", self.config["norm_eps"])
            return self._linear(inner, "classifier")
        if self.kind == "bert":
            return self._linear(np.tanh(self._linear(rows[0], "bert.pooler.dense")), "classifier")
        return self._linear(np.tanh(self._linear(rows[0], "classifier.dense")), "classifier.out_proj")

    def score(self, tokens: list[int], second_text: int = 0) -> float:
        return float(1 / (1 + np.exp(-self.logits(tokens, second_text)[0])))
