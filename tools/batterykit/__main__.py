"""Long test runs that are too slow for .ci/run, in parts (batterykit/parts.toml). Run by hand, on a build of the preset dev. Continues
after a failure and exits with status 1 if any part failed.

Results go to tests/battery/record.json: count reached, seconds, date and commit. tools/battery_table.py writes them into
docs/status.md; commit both. Logs are in build/battery/PART.log. Most long parts run in pieces that add up: what was reached is
recorded when the time ends, and --resume continues there.

examples:
  tools/battery.sh                          all parts (days)
  tools/battery.sh needle soak              only these; --list prints all
  tools/battery.sh --resume --hours 8       what has not passed on this commit, for eight hours
  tools/battery.sh --trial 2                the commands of all parts that count, once with a count of 2; not recorded"""

import argparse
import signal
import sys
import time
from pathlib import Path

from . import parts
from .record import FILE, REPO, Entry, Record, commit
from .runner import Runner

sys.path.insert(0, str(REPO / "tools"))
import smollm2_path  # noqa: E402


def parse(names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "tools/battery.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="default: all")
    parser.add_argument("--list", action="store_true", help="print the parts with their counts")
    parser.add_argument("--resume", action="store_true", help="skip what passed on this commit, and continue what was cut off")
    parser.add_argument("--hours", type=float, default=float("inf"), metavar="H", help="end after H hours (default: no limit)")
    parser.add_argument("--trial", type=int, metavar="N", help="run each command once with this count, without a record")
    parser.add_argument("--record", type=Path, default=FILE, metavar="FILE", help="default: tests/battery/record.json")
    args = parser.parse_args()
    if unknown := [name for name in args.parts if name not in names]:
        parser.error(f"unknown part {unknown[0]}; --list prints them")
    return args


def describe(part: parts.Part, entry: Entry | None) -> str:
    if entry is None:
        return f"battery: {part.name}: no time left"
    rate = f", {entry.per_hour:,.0f} per hour" if entry.per_hour else ""
    return f"battery: {part.name}: {entry.result}: {entry.count:,} of {part.count:,} {part.unit} in {entry.seconds:,.0f} s{rate}"


def main() -> int:
    battery = parts.read()
    args = parse(list(battery.parts))
    if args.list:
        for part in battery.parts.values():
            print(f"{part.name:20} {part.count:12,} {part.unit}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the command is ended too
    folder = REPO / "build" / "battery"
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 3600 * args.hours
    runner = Runner(battery, Record(args.record), commit(), folder, smollm2_path.find(), deadline, args.resume)
    failed = False
    chosen = args.parts or [name for name, part in battery.parts.items() if part.count > 1 or not args.trial]
    for name in chosen:
        part = battery.parts[name]
        if args.trial:
            passed = runner.trial(part, args.trial)
            print(f"battery: {name}: {'passed' if passed else 'FAILED'}", flush=True)
        else:
            entry = runner.run(part)
            passed = entry is None or entry.result != "failed"
            print(describe(part, entry), flush=True)
        if not passed:
            failed = True
            print(f"battery: see build/battery/{name}.log", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
