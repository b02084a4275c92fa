#!/usr/bin/env python3
"""Checks and measures Octavo on a Mac, step by step, and writes octavo-mac-report.json and octavo-mac-report.md. Started by
tools/first_mac.sh. Uses the standard library only, and runs on the Python 3.9 of macOS.

A step that fails or exceeds its time limit is recorded, and the next one runs. Results and logs are kept in the state folder."""

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mac_kit import report, steps  # noqa: E402


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--list", action="store_true", help="print the steps and exit")
    add("--only", metavar="STEPS", help="run only these steps, separated by commas")
    add("--restart", action="store_true", help="forget the results of earlier runs")
    add("--simulated", action="store_true", help="use the Metal simulator and tiny models, on Linux")
    add("--state", type=Path, help="folder of results and logs (default: build/first-mac, or octavo-first-mac for the tarball)")
    add("--out", type=Path, default=Path(), help="folder of the report (default: the current one)")
    add("--octavo", type=Path, help="the octavo program (default: that of the clone or tarball)")
    add("--limit-scale", type=float, default=1, help="factor on every time limit (default: 1)")
    add("--bf16-model", default="Qwen/Qwen3-0.6B", help="default: %(default)s")
    add("--four-bit-model", default="mlx-community/Qwen3-0.6B-4bit", help="default: %(default)s")
    add("--hybrid-model", default="Qwen/Qwen3.5-0.8B", help="default: %(default)s")
    add("--golden-model", help="SmolLM2-135M-Instruct.Q4_1.gguf (default: the one that tools/bootstrap.sh installed)")
    return parser.parse_args(argv)


class State:
    """Results by step name, one file each, so that an interrupted run loses at most one step."""

    def __init__(self, folder, key):
        self.folder = folder
        self.logs = folder / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.key_file = folder / "key.json"
        if self.key_file.exists() and json.loads(self.key_file.read_text()) != key:
            print("first_mac: the earlier results are of another version or mode and are dropped")
            self.forget()
        self.key_file.write_text(json.dumps(key))

    def path(self, name):
        return self.folder / f"{name}.result.json"

    def forget(self):
        for path in self.folder.glob("*.result.json"):
            path.unlink()

    def get(self, name):
        try:
            return json.loads(self.path(name).read_text())
        except (OSError, ValueError):
            return None

    def put(self, result):
        written = self.path(result["name"]).with_suffix(".tmp")
        written.write_text(json.dumps(result, indent=1))
        written.replace(self.path(result["name"]))


def stop(process):
    """Ends the step's whole process group, politely first."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=10)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            process.wait()
            return


def run_command(command, environment, log, limit):
    """Returns "passed", "failed" or "timed out", and the exit status."""
    with open(log, "w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env={**os.environ, **environment}, start_new_session=True)
        try:
            status = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            stop(process)
            return "timed out", None
        except BaseException:
            stop(process)
            raise
    return ("passed" if status == 0 else "failed"), status


def run_step(step, context, state):
    result = {"name": step.name, "about": step.about, "status": "skipped", "seconds": 0}
    reason = step.skip(context)
    if reason:
        return {**result, "reason": reason}
    command, environment = step.command(context)
    log = state.logs / f"{step.name}.log"
    limit = step.limit_seconds * context.limit_scale
    start = time.monotonic()
    result["command"] = " ".join(str(word) for word in command)
    result["status"], exit_status = run_command([str(word) for word in command], environment, log, limit)
    result["seconds"] = round(time.monotonic() - start, 1)
    text = log.read_text(errors="replace")
    if result["status"] == "timed out":
        result["reason"] = f"not finished after {limit:.0f} s"
    elif result["status"] == "failed":
        result["reason"] = f"exit status {exit_status}"
    try:
        result["figures"] = step.figures(text, context)
    except Exception as error:  # the log of a failed step may have any form
        result["figures"] = {}
        if result["status"] == "passed":
            result.update(status="failed", reason=f"its output could not be read: {error!r}")
    if result["status"] != "passed":
        result["log_tail"] = text.splitlines()[-20:]
    return result


def chosen_steps(only):
    known = {step.name: step for step in steps.STEPS}
    names = only.split(",") if only else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"first_mac: unknown step {unknown[0]}; --list prints them")
    return [known[name] for name in known if name in names]


def main(argv=None):
    args = parse(argv)
    if args.list:
        print("\n".join(f"{step.name:12} {step.about}" for step in steps.STEPS))
        return 0
    chosen = chosen_steps(args.only)
    context = steps.Context(args)
    state = State(context.state, context.key())
    if args.restart:
        state.forget()
    started = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    interrupted = False
    try:
        for step in chosen:
            earlier = state.get(step.name)
            if earlier and earlier["status"] == "passed":
                context.results[step.name] = earlier
                print(f"{step.name:12} passed before")
                continue
            print(f"{step.name:12} {step.about} ...", flush=True)
            result = run_step(step, context, state)
            state.put(result)
            context.results[step.name] = result
            print(f"{'':12} {result['status']} after {result['seconds']} s {result.get('reason', '')}".rstrip(), flush=True)
    except KeyboardInterrupt:
        interrupted = True
        print("first_mac: interrupted; run it again to continue")
    # Steps of earlier runs with other --only lists belong to the report, too.
    results = [found for found in (state.get(step.name) for step in steps.STEPS) if found]
    for path in report.write(args.out, context, results, started):
        print(f"first_mac: {path}")
    if interrupted:
        return 130
    return 1 if any(result["status"] in ("failed", "timed out") for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
