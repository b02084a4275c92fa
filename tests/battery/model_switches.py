#!/usr/bin/env python3
"""Switches between models at random: the processes of all loaded models together never exceed the memory plan of the machine, and every
answer of a model is the same.

    tests/battery/model_switches.py OCTAVO MODEL MODEL MODEL [--switches 500] [--serve-flag=--memory-limit=4GiB]
    tests/battery/model_switches.py OCTAVO --tiny [--switches 500]

--tiny makes three tiny random models. Starts `octavo serve MODEL...` with --models-max 2 and sends requests from two threads. Prints one JSON line."""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def call(url: str, body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as response:
        return json.load(response)


def resident_bytes(pid: int) -> int:
    """The process's resident memory; 0 if it has ended."""
    try:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


class Watch:
    """Measures the memory of the processes while the switches run."""

    def __init__(self, url: str):
        self.url = url
        self.most_resident = 0
        self.most_planned = 0
        self.budget = 0
        self.most_models = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self.ended.wait(0.05):
            ps = call(self.url + "/octavo/ps")
            self.budget = ps["budget_bytes"]
            self.most_planned = max(self.most_planned, ps["used_bytes"])
            self.most_models = max(self.most_models, len(ps["models"]))
            self.most_resident = max(self.most_resident, sum(resident_bytes(model["pid"]) for model in ps["models"]))

    def __enter__(self) -> "Watch":
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.ended.set()
        self.thread.join()


def switch(url: str, names: list[str], count: int, seed: int, answers: dict[str, set[str]]) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        name = rng.choice(names)
        body = {"model": name, "prompt": [5, 6, 7], "max_tokens": rng.choice((2, 16)), "temperature": 0, "ignore_eos": True}
        text = call(url + "/v1/completions", body)["choices"][0]["text"]
        answers[name + str(body["max_tokens"])].add(text)


def run(octavo: str, models: list[str], switches: int, env: dict | None = None, flags: Sequence[str] = (), seed: int = 1) -> dict:
    command = [octavo, "serve", *models, "--port", "0", "--models-max", "2", "--max-model-len", "256", "--no-access-log", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    try:
        url = next(found[1] for line in process.stdout if (found := re.search(r"listening\s+(http://\S+)", line)))
        names = [card["id"] for card in call(url + "/v1/models")["data"]][:len(models)]
        answers = {name + str(tokens): set() for name in names for tokens in (2, 16)}
        started = time.monotonic()
        with Watch(url) as watch, ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(switch, url, names, switches // 2, 2 * seed + client, answers) for client in (0, 1)]:
                done.result()
        assert all(len(texts) <= 1 for texts in answers.values()), "a model gave different answers to one prompt"
        assert sum(map(len, answers.values())) > 0
        assert watch.most_models <= 2 and watch.most_planned <= watch.budget, vars(watch)
        assert 0 < watch.most_resident <= watch.most_planned, vars(watch)
        return {"switches": switches, "seconds": round(time.monotonic() - started, 1), "budget_bytes": watch.budget,
                "most_planned_bytes": watch.most_planned, "most_resident_bytes": watch.most_resident}
    finally:
        process.terminate()
        assert process.wait(timeout=60) == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--switches", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve-flag", action="append", default=[])
    options = parser.parse_args()
    if bool(options.models) == options.tiny:
        parser.error("give models or --tiny")
    if options.models:
        print(json.dumps(run(options.octavo, options.models, options.switches, flags=options.serve_flag, seed=options.seed)))
        return
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
        import modelkit

        models = [str(modelkit.make(Path(folder) / family, modelkit.Recipe(family=family))) for family in ("llama", "qwen3", "qwen2")]
        print(json.dumps(run(options.octavo, models, options.switches, flags=options.serve_flag, seed=options.seed)))


if __name__ == "__main__":
    main()
