#!/usr/bin/env python3
"""Compares Octavo's greedy output with the tokens that mlx-lm generated (tests/e2e/goldens/smollm2.json).

usage: goldens.py OCTAVO MODEL [--cases N]

Prints one JSON line; exits with status 1 if a token differs."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

GOLDENS = Path(__file__).resolve().parents[2] / "tests" / "e2e" / "goldens" / "smollm2.json"


def generate(octavo, model, case, max_tokens):
    done = subprocess.run(
        [octavo, "generate", model, "--dtype", "float32", "--temperature", "0", "--json", "-p", case["prompt"],
         "--chat" if case["chat"] else "--raw", "--max-tokens", str(max_tokens), "--ignore-eos"],
        stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def first_difference(got, expected):
    """The index of the first token that differs, or None."""
    if got == expected:
        return None
    return next((i for i, pair in enumerate(zip(got, expected)) if pair[0] != pair[1]), min(len(got), len(expected)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("octavo")
    parser.add_argument("model")
    parser.add_argument("--cases", type=int)
    args = parser.parse_args()
    goldens = json.loads(GOLDENS.read_text())
    cases = goldens["cases"][:args.cases]
    rows = []
    for case in cases:
        answer = generate(args.octavo, args.model, case, goldens["max_tokens"])
        if answer["prompt_token_ids"] != case["prompt_token_ids"]:
            sys.exit(f"goldens: {args.model} is not {goldens['model']}: its tokenizer gives other ids")
        rows.append({"prompt": case["prompt"], "first_difference": first_difference(answer["token_ids"], case["token_ids"])})
    same = sum(row["first_difference"] is None for row in rows)
    print(json.dumps({"cases": len(rows), "identical": same, "rows": rows}))
    return 0 if same == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
