"""Drives a server through plain sockets, to send what an HTTP library would not send and see what it would hide. Starts
tests/fake_server (the real server with a fake engine)."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

REPO = Path(__file__).parents[2]


def fake_server_path() -> Path:
    """OCTAVO_FAKE_SERVER, or the one in OCTAVO_BUILD, or the one in the release build."""
    build = Path(os.environ.get("OCTAVO_BUILD", REPO / "build" / "release"))
    path = Path(os.environ.get("OCTAVO_FAKE_SERVER", build / "tests" / "fake_server"))
    if not path.exists():
        raise FileNotFoundError(f"{path} is not built")
    return path


class Closed(Exception):
    """The server closed the connection instead of responding."""


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes = b""
    whole: bool = True  # the body is complete

    def json(self) -> dict:
        return json.loads(self.body)

    @property
    def error(self) -> dict:
        return self.json()["error"]

    def events(self) -> list:
        """The data of server-sent events; "[DONE]" stays a string."""
        lines = [line[6:] for line in self.body.decode().split("\n") if line.startswith("data: ")]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]


class Wire:
    """One connection."""

    def __init__(self, port: int, host: str = "127.0.0.1", timeout: float = 30, receive_buffer: int = 0):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:  # must be set before connecting
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.unread = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        self.socket.close()

    def cut(self) -> None:
        """Resets the connection."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.socket.close()

    def send(self, data: bytes) -> "Wire":
        self.socket.sendall(data)
        return self

    def receive(self) -> bytes:
        """Some bytes, or none at the end of the connection."""
        if self.unread:
            data, self.unread = self.unread, b""
            return data
        try:
            return self.socket.recv(65536)
        except (ConnectionResetError, BrokenPipeError):
            return b""

    def _until(self, mark: bytes) -> bytes:
        data = b""
        while mark not in data:
            more = self.receive()
            if not more:
                raise Closed(f"after {data!r}")
            data += more
        head, _, self.unread = data.partition(mark)
        return head

    def _exactly(self, size: int) -> bytes:
        data, self.unread = self.unread, b""
        while len(data) < size:
            more = self.receive()
            if not more:
                raise Closed(f"{size - len(data)} bytes before the end")
            data += more
        self.unread = data[size:]
        return data[:size]

    def head(self) -> Answer:
        """Status and headers; interim responses (100) are skipped."""
        while True:
            first, *lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            version, status, *_ = first.split(" ", 2)
            assert version == "HTTP/1.1", first
            if status != "100":
                break
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return Answer(int(status), headers)

    def chunk(self) -> bytes:
        """Reads one chunk of a chunked body; an empty chunk is the end."""
        size = int(self._until(b"\r\n"), 16)
        data = self._exactly(size)
        assert self._exactly(2) == b"\r\n"
        return data

    def answer(self, method: str = "GET") -> Answer:
        answer = self.head()
        if method == "HEAD" or answer.status == 204:
            return answer
        if answer.headers.get("transfer-encoding") == "chunked":
            while data := self.chunk():
                answer.body += data
        elif "content-length" in answer.headers:
            answer.body = self._exactly(int(answer.headers["content-length"]))
        else:
            while data := self.receive():
                answer.body += data
        return answer

    def at_end(self, within: float = 5) -> bool:
        """Whether the server closes the connection in time without sending more."""
        self.socket.settimeout(within)
        try:
            return self.receive() == b""
        except TimeoutError:
            return False


def request_bytes(method: str, path: str, body: bytes | str | dict | None = None, headers: dict | None = None,
                  version: str = "1.1") -> bytes:
    if isinstance(body, dict):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode()
    fields = {"Host": "localhost"}
    if body is not None:
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    fields |= headers or {}
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


@dataclass
class Server:
    """A running server, or one that start() started."""
    port: int
    host: str = "127.0.0.1"
    process: subprocess.Popen | None = None
    headers: dict = field(default_factory=dict)  # sent with every request of ask()

    @staticmethod
    def at(url: str) -> "Server":
        parts = urlsplit(url)
        return Server(port=parts.port or 80, host=parts.hostname or "127.0.0.1")

    @staticmethod
    def start(program: Path | None = None, stderr=None, **flags) -> "Server":
        """start(step_ms=5, api_key="k") runs fake_server --step-ms 5 --api-key k. A list repeats its flag."""
        command = [str(program or fake_server_path())]
        for name, value in flags.items():
            flag = f"--{name.replace('_', '-')}"
            for one in value if isinstance(value, list) else [value]:
                command += [flag] if one is True else [flag, str(one)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
        line = process.stdout.readline().split()
        if line[:1] != ["listening"]:
            raise RuntimeError(f"fake_server left with {process.wait(10)}")
        return Server(port=int(line[1]), process=process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            time.sleep(0.02)
            self.process.send_signal(signal.SIGTERM)
        if self.process:
            self.process.wait(30)
            self.process.stdout.close()

    def wire(self, **options) -> Wire:
        return Wire(self.port, self.host, **options)

    def ask(self, method: str, path: str, body=None, headers: dict | None = None, version: str = "1.1",
            timeout: float = 30) -> Answer:
        fields = {"Connection": "close"} | self.headers | (headers or {})
        with self.wire(timeout=timeout) as wire:
            return wire.send(request_bytes(method, path, body, fields, version)).answer(method)

    def complete(self, timeout: float = 60, **fields) -> Answer:
        return self.ask("POST", "/v1/completions", {"prompt": "hello"} | fields, timeout=timeout)

    def pages(self) -> dict:
        return self.ask("GET", "/v1/octavo/memory").json()["pages"]

    def metric(self, name: str, labels: str = "") -> float:
        """Returns the first sample of that name whose labels contain `labels`."""
        for line in self.ask("GET", "/metrics").body.decode().splitlines():
            if re.match(rf"{re.escape(name)}[{{ ]", line) and labels in line:
                return float(line.rsplit(" ", 1)[1])
        return 0.0

    def steps(self) -> int:
        return int(self.metric("octavo:steps_total"))

    def wait_for_baseline(self, timeout: float = 10) -> None:
        """Waits until no page is referenced."""
        end = time.monotonic() + timeout
        while (pages := self.pages())["referenced"] != 0:
            assert time.monotonic() < end, f"pages are still in use: {pages}"
            time.sleep(0.005)

    def resident_bytes(self) -> int:
        return self.ask("GET", "/v1/octavo/memory").json()["resident_bytes"]

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)


def without_names(body: bytes) -> bytes:
    """A response's bytes without what may differ between requests: ids, times, cache hits."""
    return re.sub(rb'"(id":"[^"]*|created":\d+|cached_tokens":\d+)', b"", body)


class Canary:
    """Streams the same request repeatedly during a test; every response must have the bytes of the first one, which had
    the server to itself."""

    BODY = {"prompt": "a canary sings in the mine", "stream": True, "max_tokens": 300, "ignore_eos": True, "seed": 7,
            "temperature": 1.0, "logprobs": 2, "stream_options": {"include_usage": True}}

    def __init__(self, server: Server):
        self.server = server
        self.songs = 0
        self.wrong: list[str] = []
        self.expected = self.sing()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def sing(self) -> bytes:
        answer = self.server.ask("POST", "/v1/completions", self.BODY, timeout=120)
        assert answer.status == 200 and answer.body.endswith(b"data: [DONE]\n\n"), answer
        return without_names(answer.body)

    def _run(self) -> None:
        while not self.stopping.is_set():
            try:
                if self.sing() != self.expected:
                    self.wrong.append("an answer has other bytes")
            except Exception as error:  # reported by finish()
                self.wrong.append(repr(error))
                return
            self.songs += 1

    def finish(self) -> None:
        self.stopping.set()
        self.thread.join(120)
        assert not self.wrong, self.wrong
        assert self.songs > 0


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
