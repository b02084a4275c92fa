"""Checkpoints in the form of published embedding models, and their embeddings by mlx-lm."""

import json
import shutil
from pathlib import Path

import mlx.core as mx
import numpy as np
from modelkit import oracle

MODES = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
EOS = "<|endoftext|>"


def dress(source: Path, out: Path, mode: str = "lasttoken", *, normalize: bool = True, flat: bool = False,
          headless: bool = False, ends_with_eos: bool = True, modules: list[str] | None = None, **config) -> Path:
    """Copies a checkpoint's folder and adds the files of sentence-transformers. Like Qwen3-Embedding's, it may have names
    without "model." (flat), no lm_head though it is not tied (headless), and a tokenizer that ends texts with a token."""
    shutil.copytree(source, out)
    names = modules or ["Transformer", "Pooling"] + ["Normalize"] * normalize
    _write(out / "modules.json", [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(names)])
    (out / "1_Pooling").mkdir()
    _write(out / "1_Pooling" / "config.json",
           {f"pooling_mode_{name}": name == mode for name in MODES} | {"include_prompt": True})
    _write(out / "config.json", json.loads((out / "config.json").read_text()) | config)
    if flat or headless:
        path = out / "model.safetensors"
        tensors = {name.removeprefix("model." if flat else ""): value for name, value in mx.load(str(path)).items()
                   if not (headless and name.startswith("lm_head."))}
        mx.eval(tensors)  # before the file is overwritten
        mx.save_safetensors(str(path), tensors)
    if ends_with_eos:
        _end_texts(out / "tokenizer.json")
    return out


def _write(path: Path, content) -> None:
    path.write_text(json.dumps(content))


def _end_texts(path: Path) -> None:
    tokenizer = json.loads(path.read_text())
    eos = next(token["id"] for token in tokenizer["added_tokens"] if token["content"] == EOS)
    template = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": EOS, "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {EOS: {"id": EOS, "ids": [eos], "tokens": [EOS]}},
    }
    tokenizer["post_processor"] = {"type": "Sequence", "processors": [tokenizer["post_processor"], template]}
    path.write_text(json.dumps(tokenizer))


class Oracle:
    """mlx-lm's rows after the final norm, pooled here."""

    def __init__(self, folder: Path):
        self.model = oracle.load(json.loads((folder / "config.json").read_text()), oracle.folder_weights(folder))

    def embed(self, tokens: list[int], mode: str = "lasttoken", dimensions: int | None = None,
              normalize: bool = True) -> np.ndarray:
        rows = np.array(self.model.model(mx.array([tokens]))[0]).astype(np.float64)
        vector = (rows.mean(0) if mode == "mean_tokens" else rows[-1])[:dimensions]
        return vector / np.linalg.norm(vector) if normalize else vector
