#!/usr/bin/env python3
"""Compares Octavo with llama.cpp, OpenVINO GenAI and mlx-lm on this machine: decode at several batch sizes, and prefill.

Installs the other engines from PyPI into a separate environment (llama.cpp is compiled there) and creates the models. Each
round runs the engines one after the other with the same number of threads, so that the ratios hold even if the machine's
speed varies. Writes docs/performance.md and docs/performance.svg.

examples:
  bench/race/peers.py                                   full run, about an hour
  bench/race/peers.py --quick                           checks that everything runs; does not change docs/
  bench/race/peers.py --only 4bit --rounds 3 --json build/peers.json
  bench/race/peers.py --from-json build/peers.json      writes the documents from saved figures"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from peerkit import report  # noqa: E402
from peerkit.engines import Failed, LlamaCpp, Octavo, Script, Settings, shell  # noqa: E402
from peerkit.environment import REPO, Environment, smollm2, usable_cores  # noqa: E402

SKELETON = f"""# Performance

Written by `bench/race/peers.py`, which runs on any machine.

{report.BEGIN}
{report.END}
"""


@dataclass
class Entry:
    """One model, in the format that each engine reads."""

    name: str
    title: str
    octavo: str
    llama: str
    openvino: str | None
    mlx_lm: str | None
    batch_sizes: list[int] | None = None  # if not all


ENTRIES = {
    "bf16": Entry("bf16", "Qwen3-0.6B shapes in bf16 (OpenVINO: f16 file, bf16 compute)", "qwen3-0.6b-bf16",
                  "qwen3-0.6b-bf16.gguf", "qwen3-0.6b-f16.gguf", "qwen3-0.6b-bf16"),
    "4bit": Entry("4-bit", "Qwen3-0.6B shapes in 4 bits (MLX groups of 64; llama.cpp and OpenVINO: Q4_0)",
                  "qwen3-0.6b-mlx-4bit", "qwen3-0.6b-q4_0.gguf", "qwen3-0.6b-q4_0.gguf", "qwen3-0.6b-mlx-4bit"),
    "q4_k_m": Entry("Q4_K_M", "Qwen3-0.6B shapes as a Q4_K_M file, the same for all", "qwen3-0.6b-q4_k_m.gguf",
                    "qwen3-0.6b-q4_k_m.gguf", "qwen3-0.6b-q4_k_m.gguf", None),
    # Prompts for 8 or 32 sequences alone would take llama.cpp minutes here.
    "4b-q4_k_m": Entry("4B Q4_K_M", "Qwen3-4B shapes as a Q4_K_M file, the same for both", "qwen3-4b-q4_k_m.gguf",
                       "qwen3-4b-q4_k_m.gguf", None, None, [1]),
}


class Race:
    def __init__(self, environment: Environment, octavo: Octavo, settings: Settings, machine: dict):
        self.environment, self.octavo, self.settings = environment, octavo, settings
        self.machine = machine  # given limits; if empty, they are measured in each round
        self.llama = LlamaCpp(environment)
        self.openvino = Script(environment, "openvino")
        self.mlx_lm = Script(environment, "mlx_lm")
        # mlx-lm generates about two tokens per second, and far fewer in 4 bits, so it gets only a few.
        self.mlx_settings = Settings(settings.threads, [1], context=16, output_len=2, prefill_len=16)

    def run(self, entry: Entry, models: dict[str, Path], rounds: int) -> dict:
        done = []
        settings = replace(self.settings, batch_sizes=entry.batch_sizes or self.settings.batch_sizes)
        for number in range(1, rounds + 1):
            print(f"{entry.name}, round {number} of {rounds}", flush=True)
            done.append(self._round(models, settings, with_mlx_lm=number == 1))
        return {"name": entry.name, "title": entry.title, "batch_sizes": settings.batch_sizes,
                "commands": self._commands(models, settings), "rounds": done}

    def _round(self, models: dict[str, Path], settings: Settings, with_mlx_lm: bool) -> dict:
        limits = self.machine or self.octavo.machine(settings.threads)
        result = self._ours(models["octavo"], settings, limits) | {"machine": limits}
        result["llama.cpp"] = self._say("llama.cpp", self.llama.round(models["llama"], settings))
        if "openvino" in models:
            result["OpenVINO GenAI"] = self._say("OpenVINO GenAI", self.openvino.round(models["openvino"], settings))
        if with_mlx_lm and "mlx_lm" in models:
            result["mlx-lm"] = self._say("mlx-lm", self.mlx_lm.round(models["mlx_lm"], self.mlx_settings))
        return result

    def _ours(self, model: Path, settings: Settings, limits: dict) -> dict:
        try:
            answer = self.octavo.round(model, settings, limits)
        except Failed as error:
            return {report.OURS: {metric: str(error) for metric in report.metrics(asdict(settings))}}
        alone = next((row for row in answer["decode"] if row["batch_size"] == 1), {})
        return {report.OURS: self._say(report.OURS, Octavo.rates(answer)), report.LIMIT: Octavo.limit_rates(answer),
                "isa": answer["isa"], "outside_kernels_percent": alone.get("outside_kernels_percent")}

    @staticmethod
    def _say(engine: str, rates: dict) -> dict:
        print(f"  {engine:16}" + ", ".join(f"{metric} {report.show_rate(rate)}" for metric, rate in rates.items()), flush=True)
        return rates

    def _commands(self, models: dict[str, Path], settings: Settings) -> dict[str, str]:
        decode, prefill = self.llama.commands(models["llama"], settings)
        commands = {
            "octavo": f"OCTAVO_THREADS={settings.threads} " + shell(self.octavo.command(models["octavo"], settings)),
            "llama.cpp": shell(decode) + "\n" + shell(prefill),
        }
        if "openvino" in models:
            commands["OpenVINO GenAI"] = shell(self.openvino.command(models["openvino"], settings))
        if "mlx_lm" in models:
            commands["mlx-lm"] = shell(self.mlx_lm.command(models["mlx_lm"], self.mlx_settings))
        return commands


def chosen(args: argparse.Namespace, environment: Environment) -> list[tuple[Entry, dict[str, Path]]]:
    races = []
    for name in [args.only] if args.only else ENTRIES:
        entry = ENTRIES[name]
        models = {"octavo": entry.octavo, "llama": entry.llama, "openvino": entry.openvino, "mlx_lm": entry.mlx_lm}
        races.append((entry, {engine: environment.model(file) for engine, file in models.items() if file}))
    if args.smollm2:
        entry = Entry("SmolLM2", "SmolLM2-135M-Instruct (GGUF)", "", "", "", None)
        races.append((entry, dict.fromkeys(("octavo", "llama", "openvino"), smollm2())))
    return races


def machine_of(races: list[dict], settings: Settings) -> dict:
    """Describes the machine; its limits are the medians over all rounds."""
    rounds = [round_ for race in races for round_ in race["rounds"]]
    limits = [round_["machine"] for round_ in rounds if round_.get("machine")]
    isa = next((round_["isa"] for round_ in rounds if "isa" in round_), "unknown")
    machine = {"cores": usable_cores(), "threads": settings.threads, "isa": isa}
    for key in ("read_gbps", "matrix_tflops") if limits else ():
        machine[key] = report.median([limit[key] for limit in limits])
    return machine


def write_documents(results: dict, folder: Path, python: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document = folder / "performance.md"
    text = document.read_text() if document.exists() else SKELETON
    document.write_text(report.replace_section(text, report.section(results)))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(results, file)
        file.flush()
        subprocess.run([python, REPO / "bench/race/peerkit/plot.py", file.name, folder / "performance.svg"], check=True)
    print(f"Wrote {document} and performance.svg")


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", choices=list(ENTRIES), help="run only one of the comparisons")
    add("--smollm2", action="store_true", help="also compare with the real SmolLM2 model")
    add("--quick", action="store_true", help="one round with few tokens; writes no documents")
    add("--rounds", type=int, help="default: 5, or 1 with --quick")
    add("--threads", type=int, default=usable_cores(), help="threads of every engine; default: number of usable cores")
    add("--json", type=Path, metavar="FILE", help="save all figures of all rounds")
    add("--from-json", type=Path, metavar="FILE", help="write the documents from saved figures and run nothing")
    add("--docs", type=Path, metavar="FOLDER", help="folder for the documents; default: docs")
    add("--octavo", type=Path, default=REPO / "build/release/src/cli/octavo", help="path of the octavo program")
    add("--bandwidth", type=float, help="memory bandwidth in GB/s; with --peak, replaces the measured limits")
    add("--peak", type=float, help="peak bf16 throughput in TFLOP/s")
    add("--venv", type=Path, default=REPO / "build/peers-venv", help="environment of the other engines; default: build/peers-venv")
    add("--models", type=Path, default=REPO / "build/peers-models", help="folder for the models; default: build/peers-models")
    add("--no-install", action="store_true", help="use the environment as it is")
    return parser.parse_args(argv)


def settings_of(args: argparse.Namespace) -> Settings:
    if args.quick:
        return Settings(args.threads, [1, 8], context=32, output_len=8, prefill_len=128)
    return Settings(args.threads)


def race(args: argparse.Namespace, environment: Environment) -> dict:
    octavo = args.octavo.absolute()
    if not octavo.exists():
        sys.exit(f"peers: {args.octavo} not found; build it, or set its path with --octavo")
    if not args.no_install:
        environment.install()
    settings = settings_of(args)
    given = {"read_gbps": args.bandwidth, "matrix_tflops": args.peak} if args.bandwidth and args.peak else {}
    runner = Race(environment, Octavo(octavo), settings, given)
    rounds = args.rounds or (1 if args.quick else 5)
    races = [runner.run(entry, models, rounds) for entry, models in chosen(args, environment)]
    return {"machine": machine_of(races, settings), "settings": asdict(settings), "races": races}


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    environment = Environment(args.venv.absolute(), args.models.absolute())
    results = json.loads(args.from_json.read_text()) if args.from_json else race(args, environment)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    for done in results["races"]:
        print(f"\n{done['title']}\n{report.markdown(report.rows(done, results['settings']))}")
    if args.docs or not args.quick:
        write_documents(results, args.docs or REPO / "docs", environment.python)
    return 0


if __name__ == "__main__":
    sys.exit(main())
