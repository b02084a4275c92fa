"""Requests that a proxy may read differently, bodies without a key, and pages that embed the server's."""

import contextlib
import re
import subprocess

import pytest
from attack_kit import fake, octavo_path, raw, request_bytes

OPEN = [("GET", "/health"), ("GET", "/livez"), ("GET", "/readyz"), ("GET", "/ping"), ("POST", "/ping"), ("GET", "/"),
        ("GET", "/page/app.js"), ("GET", "/api/hello")]


def chunked(method: str, path: str, body: bytes, encoding: str = "chunked", version: str = "1.1") -> bytes:
    head = f"{method} {path} HTTP/{version}\r\nHost: localhost\r\nContent-Type: application/json\r\n" \
           f"Transfer-Encoding: {encoding}\r\n\r\n"
    return head.encode() + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"


def statuses(answer: bytes) -> list[int]:
    """Of all responses in these bytes."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


@pytest.fixture(scope="module")
def keyed():
    with fake(api_key="secret", max_open_bytes=400_000) as server:
        yield server


# Bodies before keys.

@pytest.mark.parametrize("method, path", OPEN)
def test_routes_without_a_key_take_no_body(keyed, method, path):
    keyless = {"Authorization": "none"}
    assert keyed.ask(method, path, headers=keyless).status == 200
    assert keyed.ask(method, path, b"", headers=keyless).status == 200
    for request in (request_bytes(method, path, b"x" * 1000), chunked(method, path, b"x" * 1000)):
        answer = raw(keyed, request + request_bytes("GET", "/livez"))
        assert statuses(answer) == [413], answer
        assert b"\r\nConnection: close\r\n" in answer


def test_bodies_without_a_key_do_not_hold_memory(keyed):
    """95 connections that send most of a body each, on open and on keyed routes."""
    kinds = [("GET", "/health", 413), ("POST", "/ping", 413), ("POST", "/v1/completions", 401)]
    with contextlib.ExitStack() as stack:
        for at in range(95):
            method, path, status = kinds[at % 3]
            wire = stack.enter_context(keyed.wire())
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                wire.send(request_bytes(method, path, headers={
                    "Content-Type": "application/json", "Content-Length": "3000000"}) + b"x" * 100_000)
            assert wire.answer().status == status
        assert keyed.complete(max_tokens=1, prompt="x" * 300).status == 200
        assert keyed.metric("octavo:refusals_total", 'reason="bytes_full"') == 0


# Framing.

@pytest.mark.parametrize("encoding", ["chunked, chunked", "gzip, chunked", "chunked, gzip", "identity", "chunked;a=b",
                                      "chunked,", "xchunked", "chunked\r\nTransfer-Encoding: chunked",
                                      "chunked\r\nTransfer-Encoding: identity"])
def test_other_transfer_encodings_are_refused(fake_server, encoding):
    """The bytes after such a head are never answered as a second request."""
    inner = request_bytes("GET", "/version")
    answer = raw(fake_server, chunked("POST", "/v1/completions", inner, encoding))
    assert statuses(answer) == [400], answer


def test_transfer_encoding_needs_http_1_1(fake_server):
    inner = request_bytes("GET", "/version")
    answer = raw(fake_server, chunked("POST", "/v1/completions", inner, version="1.0"))
    assert statuses(answer) == [400], answer


def test_length_and_encoding_together_are_refused(fake_server):
    request = chunked("POST", "/v1/completions", b"{}").replace(b"Host:", b"Content-Length: 3\r\nHost:", 1)
    answer = raw(fake_server, request)
    assert statuses(answer) == [400], answer


# Who may ask.

def test_an_empty_key_does_not_start(tmp_path):
    """As from an unset shell variable."""
    for flags in (["--api-key", ""], ["--api-key", " "], ["--api-key", "one", "--api-key", ""]):
        command = [str(octavo_path()), "serve", str(tmp_path / "none.gguf"), "--host", "0.0.0.0", "--port", "0", *flags]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert ended.returncode != 0 and "the key is empty" in ended.stderr + ended.stdout, ended


def test_a_rebound_name_is_refused(fake_server):
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "user@localhost"):
        assert fake_server.ask("GET", "/v1/models", headers={"Host": host}).status == 403, host
        assert fake_server.ask("GET", "/", headers={"Host": host}).status == 403, host
    for host in ("localhost", "127.0.0.1:8000", "[::1]:8000"):
        assert fake_server.ask("GET", "/v1/models", headers={"Host": host}).status == 200, host


def test_no_page_may_embed_the_playground(fake_server):
    for path in ("/", "/page/app.js"):
        policy = fake_server.ask("GET", path).headers["content-security-policy"]
        assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    for path in ("/", "/v1/models", "/nothing", "/metrics"):
        assert fake_server.ask("GET", path).headers["x-content-type-options"] == "nosniff", path
