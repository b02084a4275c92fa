"""The expected logits of a multi-token prediction layer.

mlx-lm has no such layer, but each is a layer of its model: here one of mlx-lm's layers gets the weights of the prediction
layer, and what is around it (two norms, a projection, a norm) is written out, as the DeepSeek-V3 report describes it."""

import json
from pathlib import Path

import mlx.core as mx
import numpy as np

from . import oracle


# Their prediction layer is a layer after the last one, with copies of the embedding and of the output matrix.
AFTER_LAST = ("deepseek_v3", "glm4_moe")
COPIES = ("embed_tokens.weight", "shared_head.head.weight")


def _names(config: dict) -> tuple[str, str, dict[str, str], dict[str, str]]:
    """Returns the layer's prefix, that of a layer of the same kind, the names of the tensors around it, and its last norm's."""
    last = config["num_hidden_layers"]
    if config["model_type"] in AFTER_LAST:
        at = f"model.layers.{last}."
        around = {"embedding": f"{at}enorm.weight", "hidden": f"{at}hnorm.weight", "join": f"{at}eh_proj.weight"}
        return at, f"model.layers.{last - 1}.", around, {f"{at}shared_head.norm.weight": "model.norm.weight"}
    around = {"embedding": "mtp.pre_fc_norm_embedding.weight", "hidden": "mtp.pre_fc_norm_hidden.weight",
              "join": "mtp.fc.weight"}
    return "mtp.layers.0.", f"model.layers.{last - 1}.", around, {"mtp.norm.weight": "model.norm.weight"}


def _normed(x: np.ndarray, weight: np.ndarray, config: dict) -> np.ndarray:
    offset = 0 if config["model_type"] in AFTER_LAST else 1
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + config["rms_norm_eps"]) * (weight + offset)


def folder_logits(folder: Path | str, prompts: list[list[int]]) -> list[np.ndarray]:
    """Returns [tokens - 1, vocab] for each prompt: row i predicts token i + 2 from hidden row i and token i + 1."""
    config = json.loads((Path(folder) / "config.json").read_text())
    weights = oracle.folder_weights(folder)
    at, same_kind, around, norm = _names(config)
    own = {name: value for name, value in weights.items() if not name.startswith((at, "mtp."))}
    replaced = own | {same_kind + name.removeprefix(at): value for name, value in weights.items()
                      if name.startswith(at) and name not in norm and name not in around.values() and not name.endswith(COPIES)}
    replaced |= {theirs: weights[ours] for ours, theirs in norm.items()}
    model, predictor = oracle.load(config, own), oracle.load(config, replaced)
    inner, outer = _inner(model), _inner(predictor)
    embedding, hidden, join = (np.array(weights[around[key]], np.float64) for key in ("embedding", "hidden", "join"))
    answers = []
    for prompt in prompts:
        rows = np.array(inner(mx.array([prompt]))[0], np.float64)[:-1]
        following = np.array(inner.embed_tokens(mx.array(prompt[1:])), np.float64)
        joined = np.concatenate([_normed(following, embedding, config), _normed(rows, hidden, config)], -1) @ join.T
        mask = mx.array(np.tril(np.ones((len(rows), len(rows)), bool)))
        out = outer.norm(outer.layers[-1](mx.array(joined.astype(np.float32))[None], mask, None))
        head = inner.embed_tokens.as_linear if config["tie_word_embeddings"] else _head(model)
        answers.append(np.array(head(out)[0]))
    return answers


def _inner(model):
    return getattr(model, "language_model", model).model


def _head(model):
    return getattr(model, "language_model", model).lm_head
