"""Clusters for tests: rank 0 is `octavo serve`, the others are `octavo worker`. Clients use a Unix socket, which all network namespaces share."""

import contextlib
import http.client
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from network_places import Loopback

SECRET = "OCTAVO_DISTRIBUTED_SECRET"
LIMIT = 10  # seconds in which every open request gets an error and every process exits


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


@dataclass
class Answer:
    status: int
    body: bytes

    def json(self) -> dict:
        return json.loads(self.body)


def request(uds: Path, method: str, path: str, body: dict | None = None, timeout: float = 300) -> Answer:
    with contextlib.closing(UnixConnection(uds, timeout)) as connection:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json", "Connection": "close"})
        response = connection.getresponse()
        return Answer(response.status, response.read())


@dataclass
class Setup:
    """How the ranks are started. A dict has entries for the ranks that differ."""
    flags: tuple = ()  # of octavo serve
    divides: str = "pipeline"  # layers; "tensor": matrices
    worker_flags: tuple = ()
    environment: dict[int, dict[str, str]] = field(default_factory=dict)
    models: dict[int, Path] = field(default_factory=dict)
    programs: dict[int, Path] = field(default_factory=dict)
    secrets: dict[int, str] = field(default_factory=dict)
    timeout: float = 2  # --distributed-timeout
    place: object = field(default_factory=Loopback)


class Cluster:
    """`ranks` processes; 1 is a server without a cluster."""

    def __init__(self, octavo: Path, model: Path, ranks: int, folder: Path, setup: Setup | None = None):
        self.octavo, self.model, self.ranks, self.folder = octavo, model, ranks, folder
        self.setup = setup or Setup()
        self.secret = secrets.token_hex(32)
        self.uds = folder / f"{secrets.token_hex(4)}.sock"
        self.processes: list[subprocess.Popen] = []
        self.control = ""  # HOST:PORT at which the workers connect

    @property
    def size_flag(self) -> str:
        return f"--{self.setup.divides}-parallel-size"

    def __enter__(self) -> "Cluster":
        try:
            self.start()
            self.wait_until_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.kill()

    def start(self) -> None:
        words = ["serve", self.setup.models.get(0, self.model), "--uds", self.uds, "--no-access-log", "--served-model-name", "model",
                 *self.setup.flags]
        if self.ranks > 1:
            words += [self.size_flag, self.ranks, "--distributed-listen", f"{self.setup.place.address(0)}:0", "--distributed-timeout",
                      self.setup.timeout]
        self._spawn(0, words)
        if self.ranks > 1:
            self.control = self._wait_for_control()
            for rank in range(1, self.ranks):
                self.start_worker(rank)

    def start_worker(self, rank: int) -> None:
        self._spawn(rank, ["worker", self.setup.models.get(rank, self.model), "--connect", self.control, "--rank", rank, "--listen",
                           self.setup.place.address(rank), "--distributed-timeout", self.setup.timeout, *self.setup.worker_flags])

    def _spawn(self, rank: int, words: list) -> None:
        program = self.setup.programs.get(rank, self.octavo)
        clean = {name: value for name, value in os.environ.items() if name != "OCTAVO_API_KEY"}
        own = {SECRET: self.setup.secrets.get(rank, self.secret)} | self.setup.environment.get(rank, {})
        with self.log(rank).open("w") as log:
            self.processes.append(subprocess.Popen(self.setup.place.command(rank, [str(word) for word in (program, *words)]), stdout=log,
                                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=clean | own))

    def log(self, rank: int) -> Path:
        return self.folder / f"{self.uds.stem}-rank-{rank}.log"

    def logs(self) -> str:
        return "\n".join(f"--- rank {rank}\n{self.log(rank).read_text()[-2000:]}" for rank in range(len(self.processes)))

    def _wait_for_control(self, seconds: float = 120) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := re.search(r"workers? at (\S+:\d+)", self.log(0).read_text()):
                return found[1]
            assert self.processes[0].poll() is None, self.logs()
            time.sleep(0.02)
        raise AssertionError(f"rank 0 does not listen: {self.logs()}")

    def wait_until_ready(self, seconds: float = 180) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.ask("GET", "/readyz", timeout=5).status == 200:
                    return
            assert all(process.poll() is None for process in self.processes), self.logs()
            time.sleep(0.02)
        raise AssertionError(f"the cluster is not ready: {self.logs()}")

    def ask(self, method: str, path: str, body: dict | None = None, timeout: float = 300) -> Answer:
        return request(self.uds, method, path, body, timeout)

    def complete(self, timeout: float = 300, **body) -> Answer:
        return self.ask("POST", "/v1/completions", body, timeout)

    def metric(self, name: str) -> float:
        text = self.ask("GET", "/metrics").body.decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if re.match(rf"{re.escape(name)}[{{ ]", line))

    def is_alive(self) -> bool:
        """Whether /livez is green."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.ask("GET", "/livez", timeout=2).status == 200
        return False

    def exit_codes(self, seconds: float) -> list[int | None]:
        """Of all processes; None: still running after that time."""
        end = time.monotonic() + seconds
        codes = []
        for process in self.processes:
            try:
                codes.append(process.wait(max(0.0, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                codes.append(None)
        return codes

    def stop(self) -> list[int | None]:
        """Drains rank 0; all others must end by themselves."""
        self.processes[0].send_signal(signal.SIGTERM)
        return self.exit_codes(30)

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def port_is_free(self) -> bool:
        """Whether the control port can be bound again. On loopback only."""
        host, port = self.control.rsplit(":", 1)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, int(port)))
            except OSError:
                return False
        return True


class Streams:
    """Streamed completions of a cluster, each on a thread."""

    def __init__(self, cluster: Cluster, count: int, tokens: int = 4000):
        self.cluster, self.tokens = cluster, tokens
        self.bodies = [b""] * count
        self.ended_at: list[float | None] = [None] * count
        self.started = [threading.Event() for _ in range(count)]
        self.threads = [threading.Thread(target=self._read, args=(number,), daemon=True) for number in range(count)]
        for thread in self.threads:
            thread.start()

    def _read(self, number: int) -> None:
        body = {"prompt": f"stream {number}", "stream": True, "max_tokens": self.tokens, "ignore_eos": True, "temperature": 1, "seed": number}
        connection = UnixConnection(self.cluster.uds, timeout=120)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            while data := response.read1(65536):
                self.bodies[number] += data
                self.started[number].set()
        self.ended_at[number] = time.monotonic()
        self.started[number].set()

    def wait_until_started(self, seconds: float = 60) -> None:
        for event in self.started:
            assert event.wait(seconds), "a stream has not started"

    def finish(self, seconds: float) -> bool:
        """Whether all have ended in time."""
        end = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self.threads)

    def errors(self) -> list[str]:
        """The message of each stream's last error event; empty if it has none."""
        return [error_of(body) for body in self.bodies]


def error_of(body: bytes) -> str:
    found = ""
    for line in body.decode(errors="replace").split("\n"):
        if line.startswith("data: {"):
            with contextlib.suppress(json.JSONDecodeError):
                error = json.loads(line[6:]).get("error")
                found = error["message"] if error else found
    return found


@dataclass
class Outcome:
    """What happened after a rank was killed or stopped."""
    problems: list[str]
    seconds: float  # until all other processes had exited

    @property
    def ok(self) -> bool:
        return not self.problems


def disturb(cluster: Cluster, rank: int, number: signal.Signals, streams: int = 4, delay: float = 0.0) -> Outcome:
    """Sends a signal to a rank while answers stream, and checks that the others answer with an error and exit."""
    running = Streams(cluster, streams)
    running.wait_until_started()
    time.sleep(delay)
    began = time.monotonic()
    cluster.processes[rank].send_signal(number)
    problems = []
    # A stopped rank 0 cannot answer; its supervisor kills it when the workers have exited.
    answers = not (rank == 0 and number == signal.SIGSTOP)
    if answers and not running.finish(LIMIT):
        problems.append("a stream is open after 10 s")
    others = [process for index, process in enumerate(cluster.processes) if index != rank]
    codes = []
    for process in others:
        try:
            codes.append(process.wait(max(0.1, LIMIT - (time.monotonic() - began))))
        except subprocess.TimeoutExpired:
            codes.append(None)
    seconds = time.monotonic() - began
    if None in codes:
        problems.append(f"processes still run after 10 s: {codes}")
    if 0 in codes:
        problems.append(f"a process exited with status 0: {codes}")
    if rank != 0:
        problems += [f"stream {index} has no error that names rank {rank}: {running.bodies[index][-300:]!r}"
                     for index, error in enumerate(running.errors()) if f"rank {rank}" not in error]
    if answers and cluster.is_alive():
        problems.append("/livez is green")
    cluster.kill()
    if isinstance(cluster.setup.place, Loopback) and not cluster.port_is_free():
        problems.append(f"{cluster.control} is still bound")
    return Outcome(problems, seconds)


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and those that these have."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def are_gone(pids: set[int], seconds: float = 5) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(_runs(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
