"""Runs attacks against a server on loopback and asserts what they may cost: time, memory, and the delay of another client's
stream.

    def test_many_objects(server):
        body = hostile()                              # before the block, so that building it is not measured
        with bounded(server):                         # 2 s, 300 MB, neighbour's gap 250 ms, memory within the printed plan
            status, answer = post(server, "/v1/completions", body)
        assert status == 400

`real(*flags)` starts `octavo serve` with SmolLM2-135M, `fake(**flags)` tests/fake_server. Linux only (reads /proc)."""

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
import smollm2_path
from running_server import running
from server_kit import REPO, Closed, Server, request_bytes

# Short steps: a gap then measures the attack, not a long prefill of it. A small pool keeps the plan's total small.
FLAGS = ("--max-num-batched-tokens", 64, "--kv-memory", "512MiB", "--no-access-log")

MB = 1_000_000


class TooSlow(AssertionError):
    """A bound of time was missed. Such a test is run again, since another process on the same cores delays everything."""


@dataclass
class AttackedServer(Server):
    """A server_kit.Server (ask, wire, metric, ...) that also knows its memory."""
    plan_bytes: int | None = None  # total of the printed memory plan; None if the server prints none
    lines: list[str] = field(default_factory=list)  # output of the process, including the log

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def key(self) -> str:
        """The API key of the neighbour's requests, from `headers`."""
        return self.headers.get("Authorization", "").removeprefix("Bearer ")

    def rss(self) -> int:
        """Resident bytes of the process, and the private ones of the processes it started."""
        started = [child for child in _descendants(self.pid) if not _shares_memory(child, self.pid)]
        return _status_bytes(self.pid, "VmRSS") + sum(_private_bytes(child) for child in started)

    def peak_rss(self) -> int:
        """The most resident bytes of the process itself since the start or the last reset_peak()."""
        return peak_bytes(self.pid)

    def reset_peak(self) -> None:
        reset_peak(self.pid)

    def alive(self) -> bool:
        return self.process.poll() is None and self.ask("GET", "/livez", timeout=5).status == 200


def _status_bytes(pid: int, name: str) -> int:
    try:
        found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
    except OSError:
        found = None  # the process has ended
    return int(found[1]) * 1024 if found else 0


def peak_bytes(pid: int) -> int:
    """The most resident bytes of a process since its start or the last reset_peak()."""
    return _status_bytes(pid, "VmHWM")


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _private_bytes(pid: int) -> int:
    return _status_bytes(pid, "RssAnon")


def _shares_memory(child: int, parent: int) -> bool:
    """Whether a child has not yet replaced the program: until then its memory is the parent's (posix_spawn), command line
    included."""
    try:
        return Path(f"/proc/{child}/cmdline").read_bytes() == Path(f"/proc/{parent}/cmdline").read_bytes()
    except OSError:
        return True  # it has ended


def _descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *_descendants(child)]
    return found


# Starting servers.

def octavo_path() -> Path:
    path = Path(os.environ.get("OCTAVO_BUILD", REPO / "build" / "release")) / "src" / "cli" / "octavo"
    return path if path.exists() else pytest.fail(f"{path} is not built (OCTAVO_BUILD chooses the build folder)")


def model_path() -> Path:
    return smollm2_path.find() or pytest.fail("no SmolLM2 GGUF: run tools/bootstrap.sh")


def planned_bytes(lines: list[str]) -> int:
    """The sum of the printed memory plan's items: the rows between "budget" and "left"."""
    scale = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
    total, inside = 0.0, False
    for line in lines:
        if not (row := re.match(r"  (\w[\w -]*?)\s{2,}([\d.]+) ([KMGT]iB|B)(?:\s|$)", line)):
            continue
        if row[1] == "left":
            return int(total)
        if inside:
            total += float(row[2]) * scale[row[3]]
        inside = inside or row[1] == "budget"
    raise AssertionError(f"no memory plan in {''.join(lines)}")


@contextlib.contextmanager
def real(*flags, model: Path | None = None, key: str = "", env: dict | None = None) -> Iterator[AttackedServer]:
    """`octavo serve` with FLAGS, then `flags` (of two equal flags the last one counts). With a key, give --api-key too."""
    with running(octavo_path(), model or model_path(), *_merged(FLAGS, flags), env=env) as started:
        port = int(started.url.rsplit(":", 1)[1])
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        server = AttackedServer(port=port, process=started.process, headers=headers,
                                plan_bytes=planned_bytes(started.lines), lines=started.lines)
        _warm_up(server)
        yield server


def _merged(defaults: tuple, flags: tuple) -> list:
    """The defaults without those that `flags` sets too: an option may be given once."""
    merged = []
    for at, part in enumerate(defaults):
        name = part if str(part).startswith("--") else defaults[at - 1]
        if name not in flags:
            merged.append(part)
    return [*merged, *flags]


def _warm_up(server: AttackedServer) -> None:
    """Allocates what the first request of each kind allocates, so that it is not taken for an attack's growth."""
    long_text = "word " * 600
    post(server, "/v1/completions", {"prompt": long_text, "max_tokens": 4}, timeout=60)
    post(server, "/v1/completions", {"prompt": "hi", "max_tokens": 4, "n": 8, "temperature": 1}, timeout=60)
    post(server, "/v1/chat/completions", {
        "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4,
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}}, timeout=60)


@contextlib.contextmanager
def fake(**flags) -> Iterator[AttackedServer]:
    """tests/fake_server: the real server with a fake engine. fake(step_ms=5) passes --step-ms 5."""
    keys = flags.get("api_key", [])
    first = keys[0] if isinstance(keys, list) and keys else keys  # a flag may be given several times, as a list
    with Server.start(**flags) as started:
        headers = {"Authorization": f"Bearer {first}"} if first else {}
        yield AttackedServer(port=started.port, process=started.process, headers=headers)


# Sending requests.

class Reply(NamedTuple):
    status: int
    json: dict | None  # None if the body is not JSON


def post(server: Server, path: str, body: bytes | str | dict, headers: dict | None = None, timeout: float = 10) -> Reply:
    """Sends one request on a new connection. Raises TooSlow if the server does not respond in time."""
    fields = {"Connection": "close"} | server.headers | (headers or {})
    try:
        with server.wire(timeout=timeout) as wire:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
                wire.send(request_bytes("POST", path, body, fields))
            answer = wire.answer("POST")
    except TimeoutError:
        raise TooSlow(f"{path}: no response within {timeout} s") from None
    try:
        return Reply(answer.status, json.loads(answer.body))
    except ValueError:
        return Reply(answer.status, None)


def raw(server: Server, data: bytes, timeout: float = 5, limit: int = 10 * MB) -> bytes:
    """Sends these bytes on a new connection, ends the sending side, and returns what the server sends until it closes the
    connection, the time is over, or `limit` bytes were received."""
    received = b""
    end = time.monotonic() + timeout
    with server.wire(timeout=timeout) as wire:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
            wire.send(data)
            wire.socket.shutdown(1)
        while len(received) < limit and (left := end - time.monotonic()) > 0:
            wire.socket.settimeout(left)
            try:
                more = wire.receive()
            except TimeoutError:
                break
            if not more:
                break
            received += more
    return received


# Measuring.

class Neighbour:
    """Another client's stream. `longest_gap` is in seconds, between two tokens of one stream."""

    def __init__(self, server: AttackedServer):
        program = Path(__file__).with_name("neighbour_stream.py")
        self._process = subprocess.Popen([sys.executable, str(program), str(server.port), server.key],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._changed = threading.Condition()
        self._times: list[float | None] = []  # of tokens; None where a new stream starts
        self.failed: str | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout:
            if not line.endswith("\n"):
                return  # the process was ended while it wrote
            word, _, rest = line.strip().partition(" ")
            with self._changed:
                if word == "failed":
                    self.failed = rest
                else:
                    self._times.append(float(rest) if word == "token" else None)
                self._changed.notify_all()

    def wait_for_tokens(self, count: int = 1, timeout: float = 30) -> None:
        """Waits until this many more tokens have arrived."""
        since = time.monotonic()

        def came() -> bool:
            return self.failed is not None or sum(t is not None and t > since for t in self._times[-count - 2:]) >= count

        with self._changed:
            in_time = self._changed.wait_for(came, timeout)
        assert self.failed is None, f"the neighbour's stream failed: {self.failed}"
        if not in_time:
            raise TooSlow(f"the neighbour's stream stood still for {timeout} s")

    @property
    def tokens(self) -> int:
        return sum(t is not None for t in self._times)

    @property
    def longest_gap(self) -> float:
        return self.gap_since(0)

    def gap_since(self, since: float) -> float:
        """The longest gap that ended after this time (time.monotonic())."""
        with self._changed:
            times = list(self._times)
        gaps = [b - a for a, b in zip(times, times[1:]) if a is not None and b is not None and b > since]
        return max(gaps, default=0.0)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


@contextlib.contextmanager
def neighbour(server: AttackedServer) -> Iterator[Neighbour]:
    """Runs a normal stream (temperature 0, without end) until the block ends. The block starts after its first tokens."""
    stream = Neighbour(server)
    try:
        stream.wait_for_tokens(5, timeout=60)
        yield stream
        assert stream.failed is None, f"the neighbour's stream failed: {stream.failed}"
    finally:
        stream.close()


class _MemoryWatch:
    """Samples the memory of a server and its child processes; the peak of the server itself is exact."""

    def __init__(self, server: AttackedServer):
        server.reset_peak()
        self._server = server
        self._stopping = threading.Event()
        self._most = server.rss()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(0.02):
            self._most = max(self._most, self._server.rss())

    def finish(self) -> int:
        self._stopping.set()
        self._thread.join()
        return max(self._most, self._server.rss(), self._server.peak_rss())


@contextlib.contextmanager
def bounded(server: AttackedServer, seconds: float = 2, growth_mb: float = 300, gap_ms: float = 250,
            beside: Neighbour | None = None) -> Iterator[Neighbour]:
    """Asserts that the block takes at most `seconds`, that resident memory grows by at most `growth_mb` and never exceeds
    the printed plan, and that no gap of a neighbour's stream exceeds `gap_ms`. `beside` is a stream that already runs;
    otherwise one is started before the clock."""
    with contextlib.ExitStack() as stack:
        stream = beside or stack.enter_context(neighbour(server))
        before = server.rss()
        watch = _MemoryWatch(server)
        began = time.monotonic()
        try:
            yield stream
            took = time.monotonic() - began
            stream.wait_for_tokens(1)  # the end of a gap that began during the attack
        finally:
            most = watch.finish()
        assert server.process.poll() is None, f"the server exited with {server.process.returncode}: {server.lines[-20:]}"
        assert most - before <= growth_mb * MB, f"memory grew by {(most - before) / MB:.0f} MB, allowed {growth_mb}"
        if server.plan_bytes is not None:
            assert most <= server.plan_bytes, f"{most / MB:.0f} MB resident, planned {server.plan_bytes / MB:.0f} MB"
        if took > seconds:
            raise TooSlow(f"took {took:.2f} s, allowed {seconds}")
        if (gap := stream.gap_since(began)) * 1000 > gap_ms:
            raise TooSlow(f"the neighbour waited {gap * 1000:.0f} ms for a token, allowed {gap_ms}")


__all__ = ["MB", "AttackedServer", "Closed", "Neighbour", "Reply", "TooSlow", "bounded", "fake", "model_path", "neighbour",
           "octavo_path", "peak_bytes", "planned_bytes", "post", "raw", "real", "request_bytes", "reset_peak"]
