#!/usr/bin/env python3
"""How well one API key can tell from response times whether another key has sent a prompt.

    tests/battery/cache_timing.py [--octavo build/release/src/cli/octavo] [--count 40]

The key "victim" sends prompts. Then the key "attacker" sends each of them once, alternating with prompts that nobody has sent, and
measures the time to the first byte. Prints one JSON line per setting: medians in milliseconds, and how often the faster of a pair
was the victim's (0.5: as a coin)."""

import argparse
import http.client
import json
import os
import random
import statistics
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "e2e"), str(TESTS.parent / "tools")]

import running_server  # noqa: E402
import smollm2_path  # noqa: E402

KEYS = {"victim": "key-of-the-victim-of-this-test", "attacker": "key-of-the-attacker-of-this-test"}


def first_byte(url: str, who: str, prompt: str, **fields) -> float:
    """Milliseconds."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    body = json.dumps({"prompt": prompt, "max_tokens": 1, "stream": True, **fields})
    began = time.perf_counter()
    connection.request(
        "POST", "/v1/completions", body, {"Content-Type": "application/json", "Authorization": f"Bearer {KEYS[who]}"}
    )
    response = connection.getresponse()
    response.read(1)
    took = (time.perf_counter() - began) * 1000
    assert response.status == 200, response.read()
    response.read()
    connection.close()
    return took


def prompts(rng: random.Random, count: int) -> list[str]:
    words = ("the account number password of customer is secret and this text about trees rivers engines cities").split()
    return [" ".join(rng.choice(words) for _ in range(300)) for _ in range(count)]


def measure(octavo: Path, count: int, flags: tuple = (), attacker: str = "attacker", **fields) -> dict:
    rng = random.Random(1)
    sent, unsent = prompts(rng, count), prompts(rng, count)
    keys = [part for key in KEYS.values() for part in ("--api-key", key)]
    with running_server.running(octavo, smollm2_path.find(), *keys, *flags) as server:
        for prompt in sent[:4]:
            first_byte(server.url, "attacker", "warm up " + prompt)
        for prompt in sent:
            first_byte(server.url, "victim", prompt)
        pairs = []
        for number in range(count):
            both = [("sent", sent[number]), ("unsent", unsent[number])]
            rng.shuffle(both)
            pairs.append({name: first_byte(server.url, attacker, prompt, **fields) for name, prompt in both})
    medians = {f"{name}_ms": round(statistics.median(pair[name] for pair in pairs), 2) for name in ("sent", "unsent")}
    return {**medians, "right": round(sum(pair["sent"] < pair["unsent"] for pair in pairs) / count, 2), "pairs": count}


def run(octavo: Path, count: int) -> dict[str, dict]:
    return {
        "each key its own cache (default)": measure(octavo, count),
        "--share-prefix-cache": measure(octavo, count, ("--share-prefix-cache",)),
        "the same key": measure(octavo, count, attacker="victim"),
        "the same key, another cache_salt": measure(octavo, count, attacker="victim", cache_salt="mine"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    build = Path(os.environ.get("OCTAVO_BUILD", TESTS.parent / "build" / "release"))
    parser.add_argument("--octavo", type=Path, default=build / "src" / "cli" / "octavo")
    parser.add_argument("--count", type=int, default=40)
    flags = parser.parse_args()
    for setting, figures in run(flags.octavo, flags.count).items():
        print(json.dumps({"setting": setting, **figures}), flush=True)


if __name__ == "__main__":
    main()
