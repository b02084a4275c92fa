#!/usr/bin/env python3
"""Measures how far a model's log probabilities in the default data type are from those in float32, on a fixed text.

usage: .venv/bin/python tools/perplexity.py [MODEL] [--octavo NAME=PATH]... [--mlx-lm] [--json]

The text is cut into windows of 1,000 tokens. Each window is a prompt of its own, and all its tokens but the first are scored. The
reference is the first program with `--dtype float32`. Results are comparable if they print the same SHA-256 of the token ids; the
default text differs between versions of Python."""

import argparse
import hashlib
import json
import math
import platform
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from pydoc_data import topics

import numpy as np
import smollm2_path

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO / "tests/e2e"))

import running_server  # noqa: E402

MOST_CHARACTERS_PER_TOKEN = 8  # of the part of the text that is tokenized
COLUMNS = ("perplexity", "change", "mean difference", "standard error", "mean abs difference", "largest abs difference")


def post(url: str, body: dict) -> dict:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)


def cut(tokens: list[int], count: int, size: int) -> list[list[int]]:
    if len(tokens) < count * size:
        sys.exit(f"perplexity: the text has {len(tokens)} tokens; {count} windows of {size} need {count * size}")
    return [tokens[size * i:size * (i + 1)] for i in range(count)]


def served_scores(url: str, window: list[int]) -> list[float]:
    """Returns the log probability of every token of the window but the first."""
    body = {"prompt": window, "max_tokens": 0, "echo": True, "logprobs": 0}
    scores = post(url + "/v1/completions", body)["choices"][0]["logprobs"]["token_logprobs"]
    assert len(scores) == len(window) and scores[0] is None, "one score per token"
    return scores[1:]


def mlx_lm_scores(path: str, windows: list[list[int]]) -> Iterator[list[float]]:
    """mlx-lm in float32, with weights that the gguf package decoded."""
    from modelkit import gguf_in, oracle

    model = oracle.load(gguf_in.llama_config(path), gguf_in.weights(path))
    for window in windows:
        # The sum in float64: over a large vocabulary, MLX's logsumexp in float32 is wrong by up to 1e-4.
        rows = (row.astype(np.float64) - row.max() for row in oracle.logits(model, [window])[0])
        yield [row[token] - math.log(np.exp(row).sum()) for row, token in zip(rows, window[1:])]


def gather(name: str, scores: Iterator[list[float]]) -> np.ndarray:
    found: list[float] = []
    for number, more in enumerate(scores, 1):
        found += more
        print(f"{name}: window {number}, perplexity so far {math.exp(-np.mean(found)):.4f}", file=sys.stderr, flush=True)
    return np.array(found)


class Measurement:
    def __init__(self, args: argparse.Namespace):
        self.args = args
        self.windows: list[list[int]] = []
        self.scores: dict[str, np.ndarray] = {}  # by name, the reference first

    def run(self) -> None:
        first_name, first_path = self.args.octavo[0]
        self.serve(f"{first_name} float32", first_path, "--dtype", "float32")
        if self.args.mlx_lm:
            self.scores["mlx-lm float32"] = gather("mlx-lm", mlx_lm_scores(self.args.model, self.windows))
        for name, path in self.args.octavo:
            self.serve(name, path)

    def serve(self, name: str, octavo: str, *flags: str) -> None:
        size = self.args.window
        with running_server.running(octavo, self.args.model, "--max-model-len", size + 16, "--max-num-seqs", 1,
                                    "--no-access-log", *flags) as server:
            self.windows = self.windows or cut(self.tokenized(server.url), self.args.windows, size)
            self.scores[name] = gather(name, (served_scores(server.url, window) for window in self.windows))

    def tokenized(self, url: str) -> list[int]:
        text = self.args.text.read_text() if self.args.text else "\n\n".join(topics.topics[key] for key in sorted(topics.topics))
        text = text[:MOST_CHARACTERS_PER_TOKEN * self.args.windows * self.args.window]
        return post(url + "/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"]

    def report(self) -> dict:
        ids = ",".join(str(token) for window in self.windows for token in window)
        reference = next(iter(self.scores.values()))
        return {"model": Path(self.args.model).name, "windows": len(self.windows), "window_tokens": self.args.window,
                "text": self.args.text.name if self.args.text else f"pydoc topics of Python {platform.python_version()}",
                "tokens_sha256": hashlib.sha256(ids.encode()).hexdigest(), "scored_tokens": len(reference),
                "rows": {name: row(scores, reference) for name, scores in self.scores.items()}}


def row(scores: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """Differences are of natural log probabilities, per token; the change of the perplexity is a fraction."""
    differences = scores - reference
    perplexity, wanted = math.exp(-scores.mean()), math.exp(-reference.mean())
    figures = (perplexity, perplexity / wanted - 1, differences.mean(), differences.std() / math.sqrt(len(differences)),
               abs(differences).mean(), abs(differences).max())
    return dict(zip(COLUMNS, map(float, figures)))


def print_table(report: dict) -> None:
    print(f"{report['model']}, {report['text']}: {report['windows']} windows of {report['window_tokens']} tokens, "
          f"{report['scored_tokens']} tokens scored\nSHA-256 of the token ids: {report['tokens_sha256']}\n")
    print("| | perplexity | change | mean log probability difference | mean absolute | largest absolute |\n|---|--:|--:|--:|--:|--:|")
    for name, figures in report["rows"].items():
        perplexity, change, mean, error, absolute, largest = (figures[column] for column in COLUMNS)
        print(f"| {name} | {perplexity:.4f} | {change:+.3%} | {mean:+.6f} ± {error:.6f} | {absolute:.6f} | {largest:.6f} |")


def program(text: str) -> tuple[str, str]:
    name, separator, path = text.partition("=")
    if not (name and separator and Path(path).is_file()):
        raise argparse.ArgumentTypeError(f"{text} is not NAME=PATH with the path of a program")
    return name, path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default=smollm2_path.find(), help="default: SmolLM2-135M-Instruct of .venv")
    parser.add_argument("--octavo", action="append", type=program, metavar="NAME=PATH",
                        help="a program to measure, repeatable; the first one also computes the reference (default: the release build)")
    parser.add_argument("--mlx-lm", action="store_true",
                        help="add a row for mlx-lm in float32; only for GGUF files of the llama architecture without rope scaling")
    parser.add_argument("--text", type=Path, metavar="FILE", help="default: the topics of Python's help()")
    parser.add_argument("--windows", type=int, default=20, help="default: 20")
    parser.add_argument("--window", type=int, default=1000, metavar="TOKENS", help="default: 1000")
    parser.add_argument("--limit", type=float, metavar="PERCENT",
                        help="exit with status 1 if a perplexity differs from the reference by more")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args()
    args.octavo = args.octavo or [program(f"octavo={REPO / 'build/release/src/cli/octavo'}")]
    if not args.model:
        parser.error("SmolLM2 is not installed; run this with .venv/bin/python after tools/bootstrap.sh, or name a model")
    measurement = Measurement(args)
    measurement.run()
    report = measurement.report()
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        print_table(report)
    wrong = [name for name, figures in report["rows"].items() if args.limit and abs(figures["change"]) > args.limit / 100]
    if wrong:
        sys.exit(f"perplexity: more than {args.limit}% from the reference: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
