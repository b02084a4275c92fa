"""Runs one round of each engine in a child process. A crash is reported as a result."""

import json
import os
import re
import shlex
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .environment import REPO, Environment, shown

HERE = Path(__file__).resolve().parent
TIMEOUT_SECONDS = 1800
ABSOLUTE = re.compile(r"(?<![\w.-])/[^\s\"']*?([^/\s\"']+)(?=[\s\"']|$)")


class Failed(Exception):
    """The engine produced no figures. The message is short enough for a table cell."""


@dataclass
class Settings:
    threads: int
    batch_sizes: list[int] = field(default_factory=lambda: [1, 8, 32])
    context: int = 128
    output_len: int = 32
    prefill_len: int = 512

    def task(self, model: Path) -> str:
        return json.dumps({"model": shown_or_full(model)} | vars(self))


def shown_or_full(path: Path) -> str:
    return shown(path) if path.is_relative_to(REPO) else str(path)


def run(command: list[str], env: dict[str, str] | None = None) -> str:
    """Returns stdout. Commands run in the repository root, so that they contain no paths of this machine."""
    try:
        done = subprocess.run(command, cwd=REPO, env=os.environ | (env or {}), capture_output=True, text=True,
                              timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Failed("too slow") from error
    except OSError as error:
        raise Failed("not found") from error
    if done.returncode != 0:
        print(f"{Path(command[0]).name}: {done.stderr.strip()[-2000:]}", flush=True)
        raise Failed(f"crashed: {signal.Signals(-done.returncode).name}" if done.returncode < 0 else "failed")
    return done.stdout


def last_json(text: str) -> dict:
    try:
        return json.loads(text.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise Failed("no figures") from error


class Octavo:
    def __init__(self, program: Path):
        self.program = shown_or_full(program)

    def command(self, model: Path, s: Settings) -> list[str]:
        return [self.program, "bench", "model", shown_or_full(model), "--batch-size", ",".join(map(str, s.batch_sizes)),
                "--context", str(s.context), "--output-len", str(s.output_len), "--prefill-len", str(s.prefill_len),
                "--repeats", "1", "--json"]

    def round(self, model: Path, s: Settings, limits: dict) -> dict:
        """Returns the program's JSON output, which rates() and limit_rates() read."""
        command = self.command(model, s)
        if limits:
            command += ["--bandwidth", f"{limits['read_gbps']:.3f}", "--peak", f"{limits['matrix_tflops']:.4f}"]
        return json.loads(run(command, {"OCTAVO_THREADS": str(s.threads)}))

    @staticmethod
    def rates(answer: dict) -> dict[str, float]:
        rates = {f"decode {row['batch_size']}": row["tokens_per_second"] for row in answer["decode"]}
        return rates | {"prefill": answer["prefill"]["tokens_per_second"]}

    @staticmethod
    def limit_rates(answer: dict) -> dict[str, float]:
        rows = {f"decode {row['batch_size']}": (row["batch_size"], row) for row in answer["decode"]}
        rows["prefill"] = (answer["prefill"]["tokens"], answer["prefill"])
        return {metric: 1e3 * tokens / row["limit_ms"] for metric, (tokens, row) in rows.items() if "limit_ms" in row}

    def machine(self, threads: int) -> dict:
        """Measures the current read bandwidth and bf16 peak. Returns {} if the build cannot measure them."""
        try:
            answer = json.loads(run([self.program, "bench", "machine", "--json"], {"OCTAVO_THREADS": str(threads)}))
            machine = answer["machine"]
            peaks = [p["flops"]["all_threads"]["best"] for p in machine["peaks"] if p["dtype"] == "bfloat16"]
            return {"isa": machine["isa"], "read_gbps": machine["memory_bandwidth"]["all_threads"]["best"] / 1e9,
                    "matrix_tflops": max(peaks) / 1e12}
        except (Failed, ValueError, KeyError):
            return {}


class LlamaCpp:
    """Built without its AMX path (environment.py), with weights repacked for vector instructions, its fastest form."""

    def __init__(self, environment: Environment):
        self.bin = environment.llama_bin

    def commands(self, model: Path, s: Settings) -> tuple[list[str], list[str]]:
        tokens = max(s.batch_sizes) * (s.context + s.output_len)
        threads = ["-t", str(s.threads)]
        decode = [shown_or_full(self.bin / "llama-batched-bench"), "-m", shown_or_full(model), *threads, "-c", str(tokens),
                  "-b", "2048", "-ub", "512", "-npp", str(s.context), "-ntg", str(s.output_len),
                  "-npl", ",".join(map(str, s.batch_sizes)), "--output-format", "jsonl"]
        prefill = [shown_or_full(self.bin / "llama-bench"), "-m", shown_or_full(model), *threads, "-p", str(s.prefill_len),
                   "-n", "0", "-r", "1", "-o", "json"]
        return decode, prefill

    def round(self, model: Path, s: Settings) -> dict[str, float | str]:
        decode, prefill = self.commands(model, s)
        rates: dict[str, float | str] = {}
        try:
            for line in run(decode).splitlines():
                if line.startswith("{"):
                    row = json.loads(line)
                    rates[f"decode {row['pl']}"] = float(row["speed_tg"])
        except Failed as error:
            rates |= {f"decode {size}": str(error) for size in s.batch_sizes}
        try:
            rates["prefill"] = float(json.loads(run(prefill))[0]["avg_ts"])
        except Failed as error:
            rates["prefill"] = str(error)
        return rates


class Script:
    """An engine that is a Python package. run_<name>.py runs it in the peers' environment."""

    def __init__(self, environment: Environment, name: str):
        self.python = shown_or_full(environment.python)
        self.script = shown(HERE / f"run_{name}.py")

    def command(self, model: Path, s: Settings) -> list[str]:
        return [self.python, self.script, s.task(model)]

    def round(self, model: Path, s: Settings) -> dict[str, float | str]:
        try:
            return last_json(run(self.command(model, s)))
        except Failed as error:
            return {f"decode {size}": str(error) for size in s.batch_sizes} | {"prefill": str(error)}


def shell(command: list[str]) -> str:
    """Formats a command for the document; absolute paths are shortened to their last part."""
    return ABSOLUTE.sub(r"\1", shlex.join(command))
