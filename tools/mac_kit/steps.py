"""The steps of tools/first_mac.py: what each runs, how long it may take, and the figures in its output."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BATCHES = (1, 8, 32)


class Context:
    """Paths, models and the results so far."""

    def __init__(self, args):
        self.simulated = args.simulated
        self.limit_scale = args.limit_scale
        self.clone = (ROOT / "CMakeLists.txt").exists()
        self.build = ROOT / "build" / "release"
        # The tarball has this folder in share/octavo/first-mac.
        self.octavo = args.octavo or (self.build / "src/cli/octavo" if self.clone else ROOT.parents[2] / "bin/octavo")
        self.state = args.state or (ROOT / "build" / "first-mac" if self.clone else Path("octavo-first-mac"))
        self.models = {"bf16": args.bf16_model, "4bit": args.four_bit_model, "hybrid": args.hybrid_model}
        if self.simulated:
            self.models = {name: str(self.state.resolve() / "models" / name) for name in self.models}
        self.given_golden = args.golden_model
        self.results = {}

    @property
    def python(self):
        """The clone's own, which the step `build` installs, or the one that runs this."""
        own = ROOT / ".venv" / "bin" / "python"
        return str(own) if own.exists() else sys.executable

    @property
    def golden_model(self):
        finder = ROOT / "tools" / "smollm2_path.py"
        if self.given_golden or not finder.exists():
            return self.given_golden
        return subprocess.run([self.python, str(finder)], capture_output=True, text=True).stdout.strip() or None

    def program(self, name):
        return self.build / "tests" / name

    def metal_test(self):
        found = [path for path in (self.program("octavo_metal_test"), self.program("metal_sim/octavo_metal_test"))
                 if path.exists()]
        return found[0] if found else self.program("octavo_metal_test")

    def version(self):
        try:
            return subprocess.run([str(self.octavo), "--version"], capture_output=True, text=True).stdout.strip()
        except OSError:
            return ""

    def commit(self):
        if not self.clone:
            return ""
        try:
            return subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        except OSError:
            return ""

    def key(self):
        """Results are kept while this does not change."""
        return {"commit": self.commit(), "simulated": self.simulated, "models": self.models, "octavo": str(self.octavo)}

    def figures(self, name):
        return self.results.get(name, {}).get("figures") or {}


def nothing(_text, _context):
    return {}


def never(_context):
    return ""


@dataclass
class Step:
    name: str
    about: str
    limit_seconds: float
    command: Callable  # of the context: (words, environment)
    figures: Callable = field(default=nothing)  # of the log's text and the context: a dict
    skip: Callable = field(default=never)  # of the context: the reason, or ""


def last_json(text):
    """The last JSON object in a log: printed over several lines, or on one."""
    starts = [match.start() for match in re.finditer(r"^\{", text, re.M)]
    for start in reversed(starts):
        try:
            return json.JSONDecoder().raw_decode(text[start:])[0]
        except ValueError:
            continue
    raise ValueError("no JSON object in the log")


# Programs


def missing(path, reason):
    return "" if Path(path).exists() else reason


def without_clone(context):
    return "" if context.clone else "only in a clone of the repository"


def skip_build(context):
    if not context.clone:
        return "the tarball is already built"
    built = context.octavo.exists() and context.program("bits_probe").exists() and context.metal_test().exists()
    return "already built" if built else ""


def build(_context):
    return ["bash", "-c", f"cd '{ROOT}' && tools/bootstrap.sh && cmake --workflow --preset dev"], {}


def make_models(context):
    folder = context.state.resolve() / "models"
    recipes = {"bf16": "--family qwen3 --dtype bfloat16", "4bit": "--family qwen3 --dtype bfloat16 --format mlx --bits 4 --group-size 32",
               "hybrid": "--family qwen3.5 --dtype bfloat16"}
    made = " && ".join(f"'{context.python}' '{ROOT}/tools/make_model.py' '{folder}/{name}' {flags}" for name, flags in recipes.items())
    return ["bash", "-c", f"rm -rf '{folder}' && mkdir -p '{folder}' && {made}"], {}


def needs(*names):
    """Skips a step if programs of the build are missing."""

    def skip(context):
        for name in names:
            path = context.metal_test() if name == "octavo_metal_test" else context.program(name)
            if not path.exists():
                return without_clone(context) or f"{name} is not built; run cmake --workflow --preset dev"
        return ""

    return skip


def doctor(context):
    return [context.octavo, "doctor", "--json", "--port", "0"], {}


def doctor_figures(text, _context):
    found = last_json(text)
    return {"checks": found["checks"], "facts": found["facts"]}


def instances(context):
    if not context.simulated:
        return [ROOT / "tools" / "compile_metal.sh"], {}
    return [context.python, ROOT / "tools" / "mac_kit" / "lint_kernels.py", context.state.resolve() / "instances"], {}


def skip_instances(context):
    if without_clone(context):
        return without_clone(context)
    if context.simulated:
        return missing(ROOT / "src/kernels/metal/instances.txt", "no list of instances")
    found = shutil.which("xcrun") and subprocess.run(["xcrun", "-sdk", "macosx", "--find", "metal"], capture_output=True)
    return "" if found and found.returncode == 0 else "Apple's Metal compiler is not installed (it comes with Xcode)"


def instances_figures(text, _context):
    errors = len(re.findall(r"is not valid|: error:", text))
    count = re.search(r"(\d+) instances", text)
    return {"instances": int(count[1]) if count else 0, "errors": errors}


def self_test(context):
    command = [context.metal_test(), "--gtest_brief=1"]
    if context.simulated:
        command.append("--gtest_filter=MetalNorm*.*:MetalRows*.*:MetalEmbed*.*")
    return command, {}


def self_test_figures(text, _context):
    passed = re.search(r"\[  PASSED  \] (\d+) test", text)
    return {"passed": int(passed[1]) if passed else 0, "failed": re.findall(r"^\[  FAILED  \] (\S+?),? ?\(", text, re.M)}


def bits(context):
    command = [context.program("bits_probe")]
    return command + (["--metal", "--inputs", "72", "--outputs", "17"] if context.simulated else []), {}


def json_figures(text, _context):
    return last_json(text)


def goldens(context):
    command = [context.python, ROOT / "tools" / "mac_kit" / "goldens.py", context.octavo, context.golden_model]
    return command + (["--cases", "1"] if context.simulated else []), {}


def skip_goldens(context):
    if not context.golden_model or not Path(context.golden_model).exists():
        return "no SmolLM2-135M-Instruct.Q4_1.gguf; give --golden-model"
    return ""


def needle(context):
    if context.simulated:
        return [context.program("needle"), context.models["bf16"], "--metal", "--trials", "1", "--tokens", "2", "--neighbours", "3",
                "--longest", "12", "--pool-sequences", "3"], {}
    return [context.program("needle"), context.golden_model, "--trials", "20"], {}


def skip_needle(context):
    return needs("needle")(context) or ("" if context.simulated else skip_goldens(context))


# Benchmarks


def machine(context):
    return [context.octavo, "bench", "machine", "--json"] + (["--quick"] if context.simulated else []), {}


def machine_figures(text, _context):
    found = last_json(text)["machine"]
    gpu = found.get("gpu")
    if gpu:
        return {"device": gpu["name"], "read_gbps": gpu["memory_bandwidth"]["best"] / 1e9,
                "tflops": max(peak["flops"]["best"] for peak in gpu["peaks"]) / 1e12, "machine": found}
    return {"device": found["isa"], "read_gbps": found["memory_bandwidth"]["all_threads"]["best"] / 1e9,
            "tflops": max(peak["flops"]["all_threads"]["best"] for peak in found["peaks"]) / 1e12, "machine": found}


def headline(kind):
    def command(context):
        folder = context.state.resolve() / "headline"
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{kind}*.json"):
            old.unlink()
        environment = {"OCTAVO": str(context.octavo), "MIX_MODEL": context.models["bf16"], "HYBRID_MODEL": context.models["hybrid"],
                       "JSON_FOLDER": str(folder)}
        if context.simulated:
            environment.update(MIX_REQUESTS="8", SERVE_FLAGS="--kv-memory 64MiB", BENCH_FLAGS="--vocab-size 500")
        return [ROOT / "bench" / "headline.sh", kind], environment

    def figures(_text, context):
        folder = context.state.resolve() / "headline"
        runs = [json.loads(path.read_text()) for path in sorted(folder.glob(f"{kind}*.json"))]
        names = ("completed", "failed", "duration", "output_throughput", "mean_ttft_ms", "mean_tpot_ms", "p99_itl_ms")
        return {name: sum(run[name] for run in runs) / len(runs) for name in names} if runs else {}

    return command, figures


def decode(kind):
    def command(context):
        words = [context.octavo, "bench", "model", context.models[kind], "--batch-size", ",".join(map(str, BATCHES)), "--json"]
        if context.simulated:
            words += ["--output-len", "4", "--prefill-len", "16", "--repeats", "1", "--context", "16"]
        limits = context.figures("machine")
        if limits:
            words += ["--bandwidth", f"{limits['read_gbps']:.3f}", "--peak", f"{limits['tflops']:.5f}"]
        return words, {}

    def figures(text, _context):
        found = last_json(text)
        rows = {str(row["batch_size"]): {"tokens_per_second": row["tokens_per_second"], "of_limit": row.get("limit_fraction")}
                for row in found["decode"]}
        return {"rows": rows, "prefill": found.get("prefill", {}).get("tokens_per_second"), "dtype": found["dtype"]}

    return command, figures


def mlx_lm_program(context):
    beside = Path(context.python).with_name("mlx_lm.benchmark")
    return str(beside) if beside.exists() else shutil.which("mlx_lm.benchmark")


def mlx_lm(kind):
    def command(context):
        sizes = ("16", "4", "1") if context.simulated else ("128", "32", "3")
        each = "{} --model '{}' -p {} -g {} -n {} -b".format(mlx_lm_program(context), context.models[kind], *sizes)
        return ["bash", "-ec", f"for batch in {' '.join(map(str, BATCHES))}; do echo batch=$batch; {each} $batch; done"], {}

    def figures(text, _context):
        found = re.findall(r"batch=(\d+)\n(?:(?!batch=\d+\n)[\s\S])*?Averages: .*?generation_tps=([\d.]+)", text)
        if not found:
            raise ValueError("no averages")
        return {"rows": {batch: {"tokens_per_second": float(rate)} for batch, rate in found}}

    return command, figures


def skip_mlx_lm(context):
    return "" if mlx_lm_program(context) else "mlx_lm.benchmark is not installed (pip install mlx-lm)"


STEPS = [
    Step("build", "build the clone, with its tests", 5400, build, skip=lambda c: "uses the existing build" if c.simulated else skip_build(c)),
    Step("models", "make tiny models", 120, make_models, skip=lambda c: "" if c.simulated else "only for --simulated"),
    Step("doctor", "octavo doctor", 300, doctor, doctor_figures),
    Step("instances", "compile every kernel instance", 3600, instances, instances_figures, skip_instances),
    Step("self-test", "tests of the kernels on the GPU", 3600, self_test, self_test_figures, needs("octavo_metal_test")),
    Step("bits", "a row of a product among other rows", 600, bits, json_figures, needs("bits_probe")),
    Step("goldens", "greedy output compared with mlx-lm's", 1200, goldens, json_figures, skip_goldens),
    Step("needle", "a request's bits alone and under load", 1800, needle, json_figures, skip_needle),
    Step("machine", "bandwidth and arithmetic", 600, machine, machine_figures),
    Step("mix", "100 requests, 10 per second, 32 at once", 1800, *headline("mix")),
    Step("hybrid", "10 requests of 128 + 64 tokens, 3 times", 1800, *headline("hybrid")),
    Step("decode-bf16", "decode at 1, 8 and 32 sequences, bf16", 1200, *decode("bf16")),
    Step("decode-4bit", "decode at 1, 8 and 32 sequences, 4 bits", 1200, *decode("4bit")),
    Step("mlx-lm-bf16", "the same with mlx_lm.benchmark, bf16", 1200, *mlx_lm("bf16"), skip_mlx_lm),
    Step("mlx-lm-4bit", "the same with mlx_lm.benchmark, 4 bits", 1200, *mlx_lm("4bit"), skip_mlx_lm),
]
