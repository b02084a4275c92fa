"""Output that is not read, streams that are closed, bytes that are not text, and too few descriptors: the server serves, ends
on SIGTERM, and its log stays readable."""

import contextlib
import fcntl
import json
import os
import resource
import signal
import socket
import subprocess
import time
import unicodedata
from collections.abc import Iterator

import pytest
from attack_kit import Closed, model_path, octavo_path, request_bytes
from server_kit import Server, fake_server_path

MODEL_FLAGS = ("--kv-memory", "256MiB", "--max-model-len", "512")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def started(command: list, port: int, **options) -> Iterator[Server]:
    """Runs a server on `port` until the block ends. Waits until it answers."""
    process = subprocess.Popen([*map(str, command), "--port", str(port)], **options)
    server = Server(port=port, process=process)
    try:
        end = time.monotonic() + 60
        while True:
            assert process.poll() is None, f"the server exited with {process.returncode}"
            with contextlib.suppress(OSError):
                if server.ask("GET", "/livez", timeout=5).status == 200:
                    break
            assert time.monotonic() < end, "the server did not start"
            time.sleep(0.1)
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


def real_command(*flags) -> list:
    return [octavo_path(), "serve", model_path(), *MODEL_FLAGS, *flags]


def ends_after_sigterm(server: Server, seconds: float = 10) -> int:
    server.process.send_signal(signal.SIGTERM)
    return server.process.wait(seconds)


def fill_log(server: Server, requests: int = 300) -> None:
    """Sends requests whose log lines are more than a pipe holds."""
    for i in range(requests):
        assert server.ask("GET", f"/{i}-{'x' * 1000}", timeout=5).status == 404


def available(descriptor: int) -> bytes:
    """What can be read from a pipe now."""
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_NONBLOCK)
    data = b""
    with contextlib.suppress(BlockingIOError):
        while more := os.read(descriptor, 65536):
            data += more
    return data


def test_a_log_pipe_that_is_not_read_stops_nothing():
    command = [fake_server_path(), "--access-log"]
    with started(command, free_port(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as server:
        fill_log(server)
        assert ends_after_sigterm(server) == 0
        lines = server.process.stderr.read().decode().splitlines()
    assert 10 < sum(" path=/" in line for line in lines) < 300
    assert all(line[:4].isdigit() for line in lines), "a line was cut"


def test_dropped_lines_are_counted():
    command = [fake_server_path(), "--access-log"]
    with started(command, free_port(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as server:
        fill_log(server)
        time.sleep(11)  # after 10 s without a reader, lines are dropped
        pipe = server.process.stderr.fileno()
        before = available(pipe).count(b" path=/")
        assert server.ask("GET", "/last", timeout=5).status == 404
        time.sleep(0.5)
        after = available(pipe).decode()
        assert f"{300 - before} log lines were dropped because stderr was not read" in after, after[-300:]
        assert " path=/last " in after
        assert ends_after_sigterm(server) == 0


def test_a_log_reader_that_goes_away_does_not_end_the_server():
    with started(real_command(), free_port(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as server:
        server.process.stderr.close()
        for _ in range(3):
            assert server.ask("GET", "/missing", timeout=5).status == 404
            time.sleep(0.1)
        assert ends_after_sigterm(server) == 0


def test_a_full_stdout_does_not_delay_the_start_or_the_end():
    reader, writer = os.pipe()
    try:
        flags = fcntl.fcntl(writer, fcntl.F_GETFL)
        fcntl.fcntl(writer, fcntl.F_SETFL, flags | os.O_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        fcntl.fcntl(writer, fcntl.F_SETFL, flags)
        with started(real_command(), free_port(), stdout=writer, stderr=writer) as server:
            assert server.ask("GET", "/missing", timeout=5).status == 404
            assert ends_after_sigterm(server) == 0
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("closed", [(2,), (0, 1, 2)])
def test_closed_streams_become_dev_null(closed):
    """Otherwise descriptor 2 would be a file or timer of the server, and the log would be written to it."""
    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    with started(real_command(), free_port(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                 stderr=subprocess.DEVNULL, preexec_fn=close) as server:
        for descriptor in closed:
            assert os.readlink(f"/proc/{server.process.pid}/fd/{descriptor}") == "/dev/null"
        assert server.ask("GET", "/missing", timeout=5).status == 404
        assert ends_after_sigterm(server) == 0


# Not UTF-8, C1 controls, an escape sequence, overlong forms, and text that must survive.
PATHS = [b"/caf\xff\xfe", b"/\x9b31m", "/\u009b31m".encode(), b"/%1b%5b31m", b"/\xc0\xaf\xed\xa0\x80", "/caf\u00e9".encode()]


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_every_log_line_is_clean_text(log_format):
    command = real_command("--log-format", log_format)
    with started(command, free_port(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as server:
        for path in PATHS:
            head = request_bytes("GET", "/PATH", headers={"Connection": "close"}).replace(b"/PATH", path, 1)
            with server.wire(timeout=5) as wire, contextlib.suppress(Closed):
                wire.send(head).answer()
        assert ends_after_sigterm(server) == 0
        log = server.process.stderr.read()
    lines = log.decode().splitlines()  # fails unless it is UTF-8
    assert sum("request" in line for line in lines) >= 1
    for line in lines:
        assert not any(unicodedata.category(c) == "Cc" for c in line), line
        if log_format == "json":
            assert isinstance(json.loads(line)["message"], str)


def test_too_few_descriptors_are_reported_once():
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    command = [fake_server_path()]
    with started(command, free_port(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                 preexec_fn=limit) as server:
        with contextlib.ExitStack() as held:
            for _ in range(120):
                held.enter_context(server.wire(timeout=5))
            time.sleep(3)
        end = time.monotonic() + 5
        while True:
            with contextlib.suppress(OSError):
                if server.ask("GET", "/livez", timeout=5).status == 200:
                    break
            assert time.monotonic() < end
        assert ends_after_sigterm(server) == 0
        log = server.process.stderr.read().decode()
    reports = [line for line in log.splitlines() if "cannot accept connections" in line]
    assert len(reports) == 1 and "ulimit -n" in reports[0], log

