"""Several `octavo serve` processes of one model. A replica keeps its port when it is started again."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(url: str, process: subprocess.Popen, log: Path, seconds: float = 120) -> None:
    """Until the URL answers with 200."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, http.client.HTTPException, TimeoutError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        assert process.poll() is None, f"{url}: the process exited with {process.returncode}: {log.read_text()[-1000:]}"
        assert time.monotonic() < end, f"{url}: no answer"
        time.sleep(0.02)


class Fleet:
    """`flags` and `environment` are functions of a replica's number."""

    def __init__(self, octavo: Path, model: Path, count: int, logs: Path, flags=lambda number: [], environment=lambda number: {}):
        self.octavo, self.model, self.logs, self.flags, self.environment = octavo, model, logs, flags, environment
        self.ports = [free_port() for _ in range(count)]
        self.processes: list[subprocess.Popen | None] = [None] * count

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    def __enter__(self) -> "Fleet":
        try:
            for number in range(len(self.ports)):
                self.start(number)
            for number in range(len(self.ports)):
                self.wait(number)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        for process in self.processes:
            if process is not None:
                process.kill()
                process.wait()

    def start(self, number: int) -> None:
        command = [str(part) for part in (self.octavo, "serve", self.model, "--port", self.ports[number], "--no-access-log",
                                          "--served-model-name", "model", *self.flags(number))]
        with self.log(number).open("a") as log:
            self.processes[number] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                                      env=os.environ | self.environment(number))

    def wait(self, number: int) -> None:
        wait_for(f"{self.urls[number]}/readyz", self.processes[number], self.log(number))

    def log(self, number: int) -> Path:
        return self.logs / f"replica-{number}.log"

    def terminate(self, number: int) -> int:
        """Waits for the drain; returns the exit status."""
        self.processes[number].send_signal(signal.SIGTERM)
        return self.processes[number].wait(timeout=120)

    def kill(self, number: int) -> None:
        self.processes[number].kill()
        self.processes[number].wait()
