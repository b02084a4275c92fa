#!/usr/bin/env python3
"""Faults of the machine, each against a real server: prints one JSON line per fault, and exits with status 1 if one failed.

    tests/battery/faults.py [FAULT...] [--count 20] [--seconds 60] [--octavo build/release/src/cli/octavo]

A fault that this machine cannot make (no cgroup, no mount, no libfaketime) is named as not run. Linux only."""

import argparse
import json
import os
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

import fault_clock
import fault_cores
import fault_descriptors
import fault_full_disk
import fault_memory
import fault_stopped
import fault_truncated_model
import smollm2_path
from fault_kit import CannotMount


def faults(flags: argparse.Namespace, folder: Path) -> dict:
    rng = random.Random(flags.seed)
    octavo, count, model = flags.octavo, flags.count, smollm2_path.find()

    def clock() -> dict:
        if not (preload := fault_clock.library()):
            raise CannotMount("libfaketime is not installed")
        return fault_clock.run(folder, 6 * count, preload)

    return {
        "full_disk_tier": lambda: fault_full_disk.disk_tier(
            octavo, folder / "tier", [rng.randrange(300_000) for _ in range(count)]
        ),
        "full_disk_pull": lambda: fault_full_disk.pull(octavo, folder / "pull", [rng.uniform(0, 1.2) for _ in range(count)]),
        "full_disk_state": lambda: fault_full_disk.state(folder / "state", [rng.randrange(1_000_000) for _ in range(count)]),
        "memory": lambda: fault_memory.run(octavo, model, folder, flags.seconds),
        "descriptors": lambda: fault_descriptors.run(5 * count, state_dir=folder / "descriptors"),
        "clock": clock,
        "truncated_while_loading": lambda: fault_truncated_model.while_loading(
            octavo, model, folder, [rng.uniform(0, 0.5) for _ in range(count)]
        ),
        "truncated_while_serving": lambda: fault_truncated_model.while_serving(octavo, model, folder),
        "cores": lambda: fault_cores.run(octavo, model, flags.seconds, flags.seed),
        "stopped": lambda: fault_stopped.run(flags.seconds),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="*")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    build = Path(os.environ.get("OCTAVO_BUILD", Path(__file__).parents[2] / "build" / "release"))
    parser.add_argument("--octavo", type=Path, default=build / "src" / "cli" / "octavo")
    flags = parser.parse_args()
    flags.octavo = flags.octavo.resolve()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="octavo-faults-") as name:
        known = faults(flags, Path(name))
        if unknown := set(flags.faults) - set(known):
            parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        for fault in flags.faults or known:
            began = time.monotonic()
            try:
                result = known[fault]()
            except CannotMount as error:
                result = {"not_run": str(error).strip()}
            except Exception as error:
                failed += 1
                result = {"failed": "".join(traceback.format_exception(error))}
            print(json.dumps({"fault": fault, **result, "seconds": round(time.monotonic() - began, 1)}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
