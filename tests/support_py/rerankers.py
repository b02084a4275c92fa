"""Checkpoints in the form of published rerankers, and their scores: of decoders by mlx-lm, of encoders by NumPy."""

import json
import math
import shutil
from pathlib import Path

import embedders
import mlx.core as mx
import numpy as np
from encoder_oracle import Encoder
from tokenizers import Tokenizer

# The flag that vLLM's documentation gives for Qwen3-Reranker.
QWEN3_RERANKER = json.dumps({"architectures": ["Qwen3ForSequenceClassification"], "classifier_from_token": ["no", "yes"],
                             "is_original_qwen3_reranker": True})
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
PROMPT = (
    '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. '
    'Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n<Instruct>: {instruction}\n<Query>: {query}\n'
    "<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")


def sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def dress_qwen3_reranker(source: Path, out: Path) -> Path:
    """A model that generates, whose tokenizer has the tokens "no" and "yes"."""
    shutil.copytree(source, out)
    path = out / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    vocabulary = tokenizer["model"]["vocab"]
    used = max([*vocabulary.values(), *(token["id"] for token in tokenizer["added_tokens"])])
    for word in ("no", "yes"):
        if word not in vocabulary:
            used += 1
            vocabulary[word] = used
    path.write_text(json.dumps(tokenizer))
    return out


def dress_classifier(source: Path, out: Path) -> Path:
    """A model with one label, and a tokenizer that ends texts with a token."""
    embedders.dress(source, out, headless=True, architectures=["Qwen3ForSequenceClassification"], num_labels=1)
    for name in ("modules.json", "1_Pooling/config.json"):
        (out / name).unlink()
    (out / "1_Pooling").rmdir()
    path = out / "model.safetensors"
    tensors = dict(mx.load(str(path)))
    hidden = json.loads((out / "config.json").read_text())["hidden_size"]
    tensors["score.weight"] = mx.random.normal((1, hidden), key=mx.random.key(5)) / 8
    mx.eval(tensors)  # before the file is overwritten
    mx.save_safetensors(str(path), tensors)
    return out


class Qwen3RerankerOracle:
    def __init__(self, folder: Path):
        self.model = embedders.Oracle(folder).model
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        vocabulary = self.tokenizer.get_vocab()
        self.no, self.yes = vocabulary["no"], vocabulary["yes"]

    def logit(self, query: str, document: str, instruction: str = INSTRUCTION) -> float:
        prompt = PROMPT.format(instruction=instruction, query=query, document=document)
        ids = self.tokenizer.encode(prompt, add_special_tokens=False).ids
        row = np.array(self.model(mx.array([ids]))[0, -1]).astype(np.float64)
        return float(row[self.yes] - row[self.no])


class ClassifierOracle:
    """`source`: the checkpoint that dress_classifier() was given, whose head mlx-lm needs."""

    def __init__(self, source: Path, folder: Path):
        self.rows = embedders.Oracle(source)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.head = np.array(mx.load(str(folder / "model.safetensors"))["score.weight"]).astype(np.float64)[0]

    def logit(self, query: str, document: str) -> float:
        ids = self.tokenizer.encode(query, document).ids
        return float(self.rows.embed(ids, normalize=False) @ self.head)


class EncoderOracle:
    def __init__(self, folder: Path):
        self.encoder = Encoder(folder)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def logit(self, query: str, document: str) -> float:
        pair = self.tokenizer.encode(query, document)
        second_text = pair.type_ids.index(1) if 1 in pair.type_ids else 0
        return float(self.encoder.logits(pair.ids, second_text)[0])
