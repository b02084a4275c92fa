#!/usr/bin/env python3
"""Checks that lm-eval's outputs have identical scores and log likelihoods: same_scores.py FOLDER FOLDER..."""

import json
import sys
from pathlib import Path


def scores(folder: Path) -> dict:
    (path,) = folder.rglob("results_*.json")
    return {name: value for name, value in json.loads(path.read_text())["results"]["octavo_facts"].items()
            if isinstance(value, float)}


def likelihoods(folder: Path) -> dict[int, str]:
    """Returns the log likelihoods of each item as text, to compare them exactly."""
    (path,) = folder.rglob("samples_octavo_facts_*.jsonl")
    samples = map(json.loads, path.read_text().splitlines())
    return {sample["doc_id"]: json.dumps(sample["resps"]) for sample in samples}


def main(folders: list[Path]) -> int:
    wanted, items = scores(folders[0]), likelihoods(folders[0])
    different = 0
    for folder in folders:
        others = likelihoods(folder)
        unlike = [item for item in items if others.get(item) != items[item]]
        different += len(unlike) + (scores(folder) != wanted) + (len(others) != len(items))
        print(f"{folder.name:12} {scores(folder)}   {len(items) - len(unlike)} of {len(items)} items alike, "
              f"{sum(resp.count('[[') for resp in others.values())} likelihoods")
        for item in unlike[:3]:
            print(f"  item {item}: {items[item]}\n       not: {others.get(item)}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
