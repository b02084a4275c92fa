#!/usr/bin/env python3
"""Measures how much a batch slows down a chat: the inter-token latency of a streamed chat alone, and while a batch runs.

usage: measure_batch_latency.py OCTAVO MODEL [--lines 200] [--tokens 400] [--rounds 3] [--serve-flag=--threads=2]

Prints one JSON line per round: percentiles in milliseconds, their ratios, and how many lines of the batch were answered
during the chat. The rounds alternate, so that a machine that becomes slower does not favour either."""

import argparse
import json
import re
import subprocess
import tempfile
import time

import openai


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def chat_latencies(client: openai.OpenAI, tokens: int) -> list[float]:
    """Milliseconds between successive events of a streamed chat."""
    stream = client.chat.completions.create(
        model="model", stream=True, max_tokens=tokens, temperature=0, extra_body={"ignore_eos": True},
        messages=[{"role": "user", "content": "Write a long story about a lighthouse."}])
    times = [time.monotonic() for chunk in stream if chunk.choices]
    return [1000 * (after - before) for before, after in zip(times[5:], times[6:])]  # the first ones follow the prompt


def start_batch(client: openai.OpenAI, lines: int) -> str:
    text = "\n".join(json.dumps({
        "custom_id": f"line {i}", "method": "POST", "url": "/v1/chat/completions",
        "body": {"model": "model", "max_tokens": 200, "temperature": 0, "ignore_eos": True,
                 "messages": [{"role": "user", "content": f"Number {i}: summarize. " + "Some words of a text. " * 40}]},
    }) for i in range(lines))
    file = client.files.create(file=("batch.jsonl", text.encode()), purpose="batch")
    return client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h").id


def measure(client: openai.OpenAI, options: argparse.Namespace) -> dict:
    idle = chat_latencies(client, options.tokens)
    batch = start_batch(client, options.lines)
    while client.batches.retrieve(batch).request_counts.completed < 1:
        time.sleep(0.05)
    before = client.batches.retrieve(batch).request_counts.completed
    beside = chat_latencies(client, options.tokens)
    after = client.batches.retrieve(batch).request_counts.completed
    client.batches.cancel(batch)
    while client.batches.retrieve(batch).status == "cancelling":
        time.sleep(0.05)
    report = {"lines_answered": after - before}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        alone, busy = percentile(idle, share), percentile(beside, share)
        report |= {f"{name}_idle_ms": round(alone, 2), f"{name}_batch_ms": round(busy, 2), f"{name}_ratio": round(busy / alone, 3)}
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo")
    parser.add_argument("model")
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve-flag", action="append", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [options.octavo, "serve", options.model, "--served-model-name", "model", "--port", "0", "--state-dir", folder,
             "--no-access-log", *options.serve_flag], stdout=subprocess.PIPE, text=True)
        try:
            url = next(found[1] for line in server.stdout if (found := re.search(r"listening\s+(http://\S+)", line)))
            client = openai.OpenAI(base_url=url + "/v1", api_key="none")
            for _ in range(options.rounds):
                print(json.dumps(measure(client, options)), flush=True)
        finally:
            server.terminate()
            server.wait(30)


if __name__ == "__main__":
    main()
