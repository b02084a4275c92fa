"""Requests that are cheap to send and would hold up the one thread of the front process."""

import contextlib
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest
from server_kit import Server, fake_server_path, request_bytes

MOST_GAP = 0.25
CLOSE = {"Connection": "close"}
SHORT = {"model": "fake", "prompt": "a", "max_tokens": 1}


@contextlib.contextmanager
def child(socket) -> Iterator[None]:
    process = subprocess.Popen([fake_server_path(), "--uds", socket, "--behind-front", "--max-model-len", "2048", "--pages", "2048"],
                               stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().split()[:1] == ["listening"]
        yield
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    socket = tmp_path_factory.mktemp("front") / "child"
    program = fake_server_path().with_name("fake_front")
    with child(socket), Server.start(program, child=f"fake={socket}=fake") as server:
        yield server


@contextlib.contextmanager
def answers_quickly(server: Server) -> Iterator[None]:
    """The longest time that another client's request takes meanwhile."""
    took, stopping = [], threading.Event()

    def probe() -> None:
        while not stopping.is_set():
            began = time.monotonic()
            server.ask("GET", "/livez", timeout=60)
            took.append(time.monotonic() - began)

    thread = threading.Thread(target=probe, daemon=True)
    thread.start()
    time.sleep(0.1)
    try:
        yield
    finally:
        stopping.set()
        thread.join()
    assert max(took) < MOST_GAP, f"another client waited {max(took):.2f} s"


def send(server: Server, data: bytes) -> int:
    with server.wire(timeout=60) as wire:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            wire.send(data)
        return wire.answer("POST").status


@pytest.mark.parametrize("member", [b',"\\n":1', b',"\\u006d":1'])
def test_many_keys_that_must_be_decoded(front, member):
    body = b'{"model":"fake","prompt":"a","max_tokens":1' + member * (8_000_000 // len(member)) + b"}"
    data = request_bytes("POST", "/v1/completions", body, CLOSE)
    with answers_quickly(front):
        assert send(front, data) == 400


def test_many_names_in_the_header_connection(front):
    data = request_bytes("POST", "/v1/completions", SHORT)
    head, body = data.split(b"\r\n\r\n", 1)
    names = b"\r\nConnection: close," + b",".join(b"x%d" % (number % 1000) for number in range(5500))
    with answers_quickly(front):
        assert send(front, head + names + b"\r\na:b" * 5600 + b"\r\n\r\n" + body) == 200
