#!/usr/bin/env python3
"""Measures how often a model answers plain questions correctly with the default sampling of several programs.

usage: tools/measure_sampling.py OCTAVO MODEL [--seeds N]

Starts a server, asks every question once per seed and setting, and prints a Markdown table. docs/server.md has the result for
SmolLM2-135M-Instruct (Q4_1)."""

import argparse
import json
import re
import subprocess
import sys
import urllib.request

# A question and a pattern of right answers.
QUESTIONS = [
    ("What is the capital of France?", r"\bParis\b"),
    ("What color is the sky on a clear day?", r"\bblue\b"),
    ("How many days are there in a week?", r"\b(7|seven)\b"),
    ("What is the largest planet in our solar system?", r"\bJupiter\b"),
    ("What is the chemical formula of water?", r"H2O|H₂O"),
]

SETTINGS = {
    "greedy (`temperature` 0)": {"temperature": 0},
    "Octavo: `temperature` 0.7, `top_p` 0.95, `min_p` 0.05": {"temperature": 0.7, "top_p": 0.95, "min_p": 0.05},
    "llama.cpp: `temperature` 0.8, `top_k` 40, `top_p` 0.95, `min_p` 0.05":
        {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05},
    "OpenAI and vLLM: `temperature` 1, `top_p` 1": {"temperature": 1, "top_p": 1, "min_p": 0, "top_k": 0},
}


def ask(url: str, question: str, settings: dict, seed: int) -> str:
    body = {"messages": [{"role": "user", "content": question}], "max_tokens": 64, "seed": seed, **settings}
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)["choices"][0]["message"]["content"] or ""


def right_answers(url: str, settings: dict, seeds: int) -> int:
    return sum(bool(re.search(pattern, ask(url, question, settings, seed), re.IGNORECASE))
               for question, pattern in QUESTIONS for seed in range(seeds))


def start(octavo: str, model: str) -> tuple[subprocess.Popen, str]:
    """Returns the server and its URL."""
    server = subprocess.Popen([octavo, "serve", model, "--port", "0", "--no-access-log"], stdout=subprocess.PIPE, text=True)
    for line in server.stdout:
        if found := re.search(r"listening\s+(http://\S+)", line):
            return server, found[1]
    sys.exit(f"the server exited with status {server.wait()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("octavo")
    parser.add_argument("model")
    parser.add_argument("--seeds", type=int, default=8, help="answers per question and setting (default: 8)")
    arguments = parser.parse_args()
    server, url = start(arguments.octavo, arguments.model)
    try:
        print("| settings | right answers |\n|---|--:|")
        for name, settings in SETTINGS.items():
            count = right_answers(url, settings, arguments.seeds)
            print(f"| {name} | {count} of {len(QUESTIONS) * arguments.seeds} |", flush=True)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
