"""The servers that bench/agent_replay.py starts: octavo, and llama.cpp's with the prompt cache of its slots saved across a restart."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

READY_SECONDS = 600


class Failed(Exception):
    """The server did not start, or refused a request."""


@dataclass
class Options:
    model: Path
    context: int  # tokens that one conversation may have
    threads: int
    folder: Path  # what survives a restart, and the log
    flags: list[str] = field(default_factory=list)


class Server:
    """One server process at a time. start() and stop() return their seconds, those of reading and saving the cache included."""

    name = ""

    def __init__(self, program: Path, options: Options):
        self.program, self.options = program, options
        self.process: subprocess.Popen | None = None
        self.port = 0
        options.folder.mkdir(parents=True, exist_ok=True)
        self.log = options.folder / f"{self.name}.log"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        raise NotImplementedError

    def restore(self) -> None:
        """Called when the server is ready after a restart."""

    def save(self) -> None:
        """Called before the server is stopped."""

    def start(self, again: bool = False) -> float:
        began = time.perf_counter()
        self.port = free_port()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=subprocess.STDOUT)
        self._wait_until_ready()
        if again:
            self.restore()
        return time.perf_counter() - began

    def stop(self) -> float:
        began = time.perf_counter()
        self.save()
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
        return time.perf_counter() - began

    def kill(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def post(self, path: str, body: dict, timeout: float = 600) -> dict:
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Failed(f"{self.name}: {path}: {error.code}: {error.read()[:500].decode(errors='replace')}") from error
        except OSError as error:
            raise Failed(f"{self.name}: {path}: {error}") from error

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise Failed(f"{self.name} exited with {self.process.returncode}: {self.log.read_text(errors='replace')[-2000:]}")
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=1):
                    return
            except OSError:
                time.sleep(0.02)
        raise Failed(f"{self.name} is not ready after {READY_SECONDS} s")


class Octavo(Server):
    """The prefix cache on disk is written while requests run and read when one needs it."""

    name = "octavo"

    def command(self) -> list[str]:
        o = self.options
        return [
            str(self.program),
            "serve",
            str(o.model),
            "--port",
            str(self.port),
            "--max-model-len",
            str(o.context),
            "--threads",
            str(o.threads),
            "--prefix-disk",
            str(o.folder / "prefix-disk"),
            *o.flags,
        ]

    def prompt_tokens(self, messages: list[dict]) -> int:
        return self.post("/tokenize", {"messages": messages})["count"]


class LlamaServer(Server):
    """One slot per agent, each with a whole context. Slots are saved by request before the server stops, and restored after it has
    started; a model whose slots cannot be saved starts without."""

    name = "llama.cpp"
    slots = 2

    def command(self) -> list[str]:
        o = self.options
        return [
            str(self.program),
            "-m",
            str(o.model),
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "-t",
            str(o.threads),
            "-np",
            str(self.slots),
            "-c",
            str(self.slots * o.context),
            "--jinja",
            "--slot-save-path",
            f"{o.folder}/",
            *o.flags,
        ]

    def save(self) -> None:
        self._slots("save")

    def restore(self) -> None:
        self._slots("restore")

    def _slots(self, action: str) -> None:
        for slot in range(self.slots):
            try:
                self.post(f"/slots/{slot}?action={action}", {"filename": f"slot{slot}.bin"})
            except Failed as error:
                print(f"  slot {slot} is not {action}d: {error}", flush=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
