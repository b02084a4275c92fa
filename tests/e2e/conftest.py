"""Shared fixtures of the end-to-end tests: paths of the programs, and checkpoints made on demand."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

REPO = Path(__file__).parents[2]
for folder in ("tools", "tests/support_py", "tests/battery"):
    sys.path.insert(0, str(REPO / folder))

import modelkit  # noqa: E402
import smollm2_path  # noqa: E402
from text_probe import TextProbe  # noqa: E402


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """OCTAVO_BUILD, or the release build."""
    return Path(os.environ.get("OCTAVO_BUILD", REPO / "build" / "release"))


@pytest.fixture(scope="session")
def octavo(build_dir) -> Path:
    return _program(build_dir / "src" / "cli" / "octavo")


@pytest.fixture(scope="session")
def instruction_sets(octavo) -> list[str]:
    """Returns the names of this machine's instruction sets, slowest first; at least two, or the test is skipped."""
    done = subprocess.run([octavo, "doctor", "--json", "--port", "0"], capture_output=True, text=True)
    names = json.loads(done.stdout)["facts"]["processor"]["available_isas"]
    if len(names) < 2:
        pytest.skip("this machine has one instruction set")
    return names


@pytest.fixture(scope="session")
def smollm2_gguf() -> Path:
    """The real model of the tests."""
    return smollm2_path.find() or pytest.fail("no SmolLM2 GGUF: run tools/bootstrap.sh")


@pytest.fixture(scope="session")
def make_model(tmp_path_factory):
    """make_model(family, **recipe fields) returns a checkpoint's path; each recipe is made once per session."""
    made: dict[modelkit.Recipe, Path] = {}
    root = tmp_path_factory.mktemp("models")

    def make(family: str, **fields) -> Path:
        recipe = modelkit.Recipe(family=family, **fields)
        if recipe not in made:
            made[recipe] = modelkit.make(root / f"{len(made):03}-{family}", recipe)
        return made[recipe]

    return make


@dataclass
class Dump:
    logits: list[np.ndarray]  # one [tokens, vocab] float32 per prompt
    launches: dict[str, int]

    def took(self, kernels: str) -> None:
        """Asserts that the run used the requested kernels only."""
        native = "cpu" if sys.platform == "linux" else "metal"
        wanted = native if kernels == "native" else kernels
        attention = (f"{kernel}.{wanted}" for kernel in ("paged_attention", "decode_attention"))
        assert any(self.launches.get(kernel, 0) > 0 for kernel in attention), self.launches
        assert all(kernel.endswith(f".{wanted}") for kernel in self.launches), self.launches


@pytest.fixture
def make_adapter(tmp_path):
    """make_adapter(model, **fields of Adapter) returns the folder of a random LoRA adapter, and its description."""
    from modelkit import adapters  # loads MLX, which most tests do not need

    def make(model: Path, **fields):
        adapter = adapters.Adapter(**fields)
        return adapters.make(tmp_path / f"adapter{len(list(tmp_path.iterdir()))}", model, adapter), adapter

    return make


@pytest.fixture(scope="session")
def dump_logits(build_dir, tmp_path_factory):
    """dump_logits(model, prompts, **options) returns the logits of all positions. Asserts that the run used the requested
    kernels."""
    out = tmp_path_factory.mktemp("logits") / "logits.bin"
    programs: dict[tuple[str | None, int], LineProgram] = {}  # by instruction set (None: the machine's best) and threads (0: all)
    done: dict[tuple, Dump] = {}  # tests compare the same few runs with each other

    def run(model: Path, prompts: list[list[int]], *, dtype: str | None = "float32", block_tokens: int = 16,
            kernels: str = "native", chunk: int = 0, batch: bool = False, isa: str | None = None,
            mtp: bool = False, adapters: list[Path] = (), adapter_of: list[int] | None = None, merge: Path | None = None,
            lora_experts: bool = False, images: list[list[dict]] | None = None, image_rows: int = 512, threads: int = 0) -> Dump:
        path = Path(os.environ["OCTAVO_ARM64_LOGITS"]) if isa == "neon" else build_dir / "tests" / "dump_logits"
        environment = ({"OCTAVO_ISA": isa} if isa else {}) | ({"OCTAVO_THREADS": str(threads)} if threads else {})
        program = programs.setdefault((isa, threads), LineProgram(path, environment))
        order = json.dumps({"model": str(model), "dtype": dtype, "block_tokens": block_tokens, "kernels": kernels,
                            "chunk": chunk, "prompts": prompts, "out": str(out), "batch": batch, "mtp": mtp,
                            **({"adapters": [str(a) for a in adapters]} if adapters else {}),
                            **({"adapter_of": adapter_of} if adapter_of else {}),
                            **({"lora_experts": True} if lora_experts else {}),
                            **({"images": images, "image_rows": image_rows} if images else {}),
                            **({"merge": str(merge)} if merge else {})})
        key = (order, isa, threads)
        if key not in done:
            answer = program.ask(order)
            values = np.fromfile(out, "<f4").reshape(-1, answer["vocab"])
            out.unlink()
            assert len(values) == sum(map(len, prompts))
            done[key] = Dump(np.split(values, np.cumsum([len(p) for p in prompts])[:-1]), answer["launches"])
        done[key].took(kernels)
        return done[key]

    yield run
    for program in programs.values():
        program.close()


@pytest.fixture
def text_probe(build_dir):
    probe = TextProbe(_program(build_dir / "tests" / "text_probe"))
    yield probe
    probe.close()


class LineProgram:
    """A program that answers each line of JSON on stdin with a line of JSON; started when first needed."""

    def __init__(self, path: Path, environment: dict[str, str] | None = None):
        self.path = path
        self.environment = environment or {}
        self.process = None

    def ask(self, line: str, timeout: float = 300) -> dict:
        if self.process is None:
            self.process = subprocess.Popen([_program(self.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                            env=os.environ | self.environment)
        watchdog = threading.Timer(timeout, self.process.kill)
        watchdog.start()
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            watchdog.cancel()
        if not answer:
            status = self.process.wait()
            self.process = None
            pytest.fail(f"{self.path.name} exited with status {status}; its stderr is above")
        answer = json.loads(answer)
        if "error" in answer:
            pytest.fail(f"{self.path.name}: {answer['error']}")
        return answer

    def close(self) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def run_json(command: list, stdin: str = "", timeout: float = 300) -> dict:
    """Runs a program that prints one JSON object; if it fails, the test fails with its stderr."""
    done = subprocess.run([str(part) for part in command], input=stdin, capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        pytest.fail(f"{Path(command[0]).name} left with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)


def _program(path: Path) -> Path:
    if not path.exists():
        pytest.fail(f"{path} is not built (OCTAVO_BUILD chooses the build folder)")
    return path


def prompts_of(*lengths: int, seed: int = 1) -> list[list[int]]:
    """Returns one list of random token ids of the tiny models' vocabulary per length."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 512, n).tolist() for n in lengths]


def assert_close(got: list[np.ndarray], wanted: list[np.ndarray], tolerance: float) -> None:
    """Asserts that no logit differs by more than the tolerance; the message says where the largest difference is."""
    assert len(got) == len(wanted)
    for number, (a, b) in enumerate(zip(got, wanted)):
        assert a.shape == b.shape, f"prompt {number}: {a.shape} instead of {b.shape}"
        assert np.isfinite(a).all(), f"prompt {number} ({len(a)} tokens): not finite"
        worst = np.abs(a - b).max(axis=1)
        at = int(worst.argmax())
        first = int((worst > tolerance).argmax())
        assert worst[at] <= tolerance, (
            f"prompt {number} ({len(a)} tokens): off by {worst[at]:.2e} at position {at}, "
            f"first above {tolerance:.0e} at position {first}")


def cosine(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """Returns the lowest cosine over all prompts."""
    return min(float(np.vdot(x, y) / (np.linalg.norm(x) * np.linalg.norm(y))) for x, y in zip(a, b))
