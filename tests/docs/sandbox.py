"""Runs the documentation's blocks in a folder that contains MODEL, with octavo and Python on the PATH and free ports. Model names
resolve to a stub hub, which serves the same small model under each name.

Blocks run unchanged, with two exceptions: free ports replace 8000 and 9000, and servers get a small KV cache. The bash blocks of
a page share exported variables."""

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from doc_pages import REPO, Block
from safetensors.numpy import save_file

NAMED = {"Qwen/Qwen3-0.6B-GGUF": "Qwen3-0.6B-Q8_0.gguf"}  # repositories named in the pages, and a file of each
STUB_HUB = REPO / "tests" / "hub" / "stub_hub.py"
TIMEOUT = 150  # seconds per block
# The wrapper sets the port that the page's other blocks use, and a small KV cache because many servers are started.
OCTAVO = """#!/bin/bash
if [[ ( "$1" == serve || "$1" == launch ) && " $* " != *" --help "* ]]; then
  [[ " $* " == *" --port "* || " $* " == *" --config "* ]] || set -- "$@" --port "$DOCS_PORT"
  [[ " $* " == *" --kv-memory "* || " $* " == *" --config "* ]] || set -- "$@" --kv-memory 1GiB
fi
if [[ "$1 $2" == "bench serve" && " $* " != *" --base-url "* ]]; then set -- "$@" --base-url "http://127.0.0.1:$DOCS_PORT"; fi
exec "$DOCS_OCTAVO" "$@"
"""
# Without --fail-with-body, curl exits with status 0 on HTTP errors.
CURL = '#!/bin/bash\nexec "$DOCS_CURL" --fail-with-body --silent --show-error "$@"\n'


def free_port() -> int:
    """Returns a port below the ephemeral range, so that an outgoing connection cannot take it before a page uses it."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


def write_adapter(folder: Path) -> None:
    """Writes a LoRA adapter of one matrix of SmolLM2 in PEFT's form."""
    folder.mkdir(parents=True)
    module = "base_model.model.model.layers.0.self_attn.q_proj"
    ones = np.ones((8, 576), np.float32)
    save_file({f"{module}.lora_A.weight": ones, f"{module}.lora_B.weight": ones.T.copy()}, str(folder / "adapter_model.safetensors"))
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 8, "lora_alpha": 8}))


@dataclass
class Outcome:
    ok: bool
    output: str


@dataclass
class Sandbox:
    folder: Path
    octavo: Path
    model: Path
    ports: dict[str, int] = field(default_factory=lambda: {"8000": free_port(), "9000": free_port()})
    server: subprocess.Popen | None = None
    server_log: Path | None = None
    hub: subprocess.Popen | None = None
    hub_url: str = ""
    library: str = ""  # the library that octavo.LLM loads; empty if it is not built

    def __post_init__(self):
        bin_folder = self.folder / ".bin"
        bin_folder.mkdir(parents=True)
        python = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'  # with a symbolic link, Python would not find its packages
        for name, text in {"octavo": OCTAVO, "curl": CURL, "python": python, "python3": python}.items():
            (bin_folder / name).write_text(text)
            (bin_folder / name).chmod(0o755)
        for name in ("MODEL", "SMALLER_MODEL"):  # a folder with one .gguf file is a model
            (self.folder / name).mkdir()
            (self.folder / name / self.model.name).symlink_to(self.model)
        self._start_hub()
        self.library = str(next(self.octavo.parents[2].rglob("liboctavo.so"), ""))
        (self.folder / "model.gguf").symlink_to(self.model)
        for name in ("sql", "chat"):
            write_adapter(self.folder / "adapters" / name)
        (self.folder / "node_modules").symlink_to(REPO / "build" / "clients-node" / "node_modules")

    def _start_hub(self) -> None:
        if not STUB_HUB.exists():
            return
        for repo, file in NAMED.items():
            folder = self.folder / ".hub" / repo
            folder.mkdir(parents=True)
            shutil.copyfile(self.model, folder / file)
        self.hub = subprocess.Popen([sys.executable, STUB_HUB, self.folder / ".hub"], stdout=subprocess.PIPE, text=True)
        told = json.loads(self.hub.stdout.readline())
        self.hub_url = next(value for value in told.values() if str(value).startswith("http"))

    def close(self) -> None:
        self.stop_server()
        if self.hub:
            self.hub.terminate()
            self.hub.wait()

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items()
                if not re.match(r"OCTAVO_|OPENAI_|ANTHROPIC_|HF_|PYTHONPATH$", name)}
        return kept | {
            "PATH": f"{self.folder / '.bin'}:{os.environ['PATH']}", "HOME": str(self.folder), "NO_COLOR": "1", "TERM": "dumb",
            "DOCS_OCTAVO": str(self.octavo), "DOCS_CURL": shutil.which("curl") or "curl", "DOCS_PORT": str(self.ports["8000"]),
            "HF_ENDPOINT": self.hub_url or "http://127.0.0.1:9", "HF_HOME": str(self.folder / ".hf"),
            "OCTAVO_LIBRARY": self.library,
            "DOCS_STATE": str(self.folder / ".state"), "PYTHONPATH": str(REPO / "python"), "NO_PROXY": "127.0.0.1,localhost"}

    def own_ports(self, text: str) -> str:
        return re.sub(r"\b(8000|9000)\b", lambda found: str(self.ports[found[1]]), text)

    def new_page(self) -> None:
        (self.folder / ".state").unlink(missing_ok=True)

    def write(self, block: Block) -> None:
        path = self.folder / block.file.lstrip("~/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.own_ports(block.text))

    def run(self, block: Block) -> Outcome:
        text = self.own_ports(block.text)
        if block.language == "python":
            return self._execute([sys.executable, "-"], text)
        if block.language == "javascript":
            path = self.folder / "block.mjs"
            path.write_text(text)
            return self._execute(["node", str(path)])
        if block.language == "console":
            return self._console(text)
        return self._bash(text)

    def _bash(self, text: str) -> Outcome:
        state = 'set -eo pipefail\n[ ! -f "$DOCS_STATE" ] || . "$DOCS_STATE"\n'
        return self._execute(["bash", "-c", f"{state}trap 'export -p >\"$DOCS_STATE\"' EXIT\n{text}"])

    def _console(self, text: str) -> Outcome:
        """Lines that start with "$ " are commands; the lines below must match the output, where ... matches anything."""
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, expected = _split_command(part)
            done = self._bash(command)
            if not done.ok:
                return done
            pattern = ".*".join(re.escape(piece.strip("\n")) for piece in re.split(r"\.\.\.", expected.strip("\n")))
            if expected.strip() and not re.search(pattern, done.output, re.DOTALL):
                return Outcome(False, f"printed\n{done.output}\ninstead of\n{expected}")
        return Outcome(True, "")

    def _execute(self, command: list[str], stdin: str = "") -> Outcome:
        process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, errors="replace")
        try:
            output, _ = process.communicate(stdin, timeout=TIMEOUT)
            return Outcome(process.returncode == 0, output)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Outcome(False, f"still ran after {TIMEOUT} s:\n{process.communicate()[0]}")

    def serve(self, text: str) -> None:
        """Starts a server and waits until it is ready."""
        self.stop_server()
        self.server_log = self.folder / ".server.log"
        state = '[ ! -f "$DOCS_STATE" ] || . "$DOCS_STATE"\n'
        with open(self.server_log, "w") as log:
            self.server = subprocess.Popen(["bash", "-c", state + self.own_ports(text)], cwd=self.folder, env=self.environment,
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        end = time.monotonic() + 60
        while not any(self._ready(port) for port in self.ports.values()):
            if self.server.poll() is not None or time.monotonic() > end:
                log = self.server_log.read_text()
                self.stop_server()
                raise AssertionError(f"the server of\n{text}\ndoes not start:\n{log}")
            time.sleep(0.05)

    @staticmethod
    def _ready(port: int) -> bool:
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1).status == 200
        except (urllib.error.URLError, OSError):
            return False

    def stop_server(self) -> None:
        if self.server is None:
            return
        try:
            os.killpg(self.server.pid, signal.SIGTERM)
            self.server.wait(timeout=10)
        except ProcessLookupError:
            pass
        except subprocess.TimeoutExpired:
            os.killpg(self.server.pid, signal.SIGKILL)
            self.server.wait()
        self.server = None


def _split_command(part: str) -> tuple[str, str]:
    """Splits off the command, including lines continued by a backslash or the shell's >, from its expected output."""
    lines = part.split("\n")
    count = 1
    while count < len(lines) and (lines[count - 1].endswith("\\") or lines[count].startswith("> ")):
        count += 1
    return "\n".join(line.removeprefix("> ") for line in lines[:count]), "\n".join(lines[count:])
