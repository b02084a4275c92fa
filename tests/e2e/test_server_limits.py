"""Timeouts, limits, API keys, CORS and HTTP details of the server, with the fake engine."""

import contextlib
import json
import time

import pytest
from server_kit import Closed, Server, request_bytes

ENDLESS = {"prompt": "hello", "max_tokens": 1000, "ignore_eos": True, "temperature": 1, "seed": 1}
VERSION = request_bytes("GET", "/version")


@pytest.fixture
def start():
    """start(**flags) runs a fake server until the test ends."""
    with contextlib.ExitStack() as stack:
        yield lambda **flags: stack.enter_context(Server.start(**flags))


@pytest.fixture(scope="module")
def plain():
    with Server.start(step_ms=1, access_log=True) as server:
        yield server


def seconds_since(began: float) -> float:
    return time.monotonic() - began


# Timeouts.

def test_headers_that_take_too_long_get_408(start):
    with start(header_timeout=300).wire() as wire:
        began = time.monotonic()
        answer = wire.send(b"GET /version HTTP/1.1\r\nHost: ").answer()
        assert answer.status == 408 and answer.headers["connection"] == "close"
        assert 0.25 < seconds_since(began) < 3
        assert wire.at_end()


def test_headers_that_trickle_get_408(start):
    """Each byte arrives in time, but the headers as a whole do not."""
    with start(header_timeout=400).wire() as wire:
        began = time.monotonic()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(100):
                wire.send(b"G")
                time.sleep(0.05)
                if seconds_since(began) > 0.8:
                    break
        assert wire.answer().status == 408


def test_a_body_that_stops_gets_408(start):
    server = start(body_timeout=300)
    with server.wire() as wire:
        began = time.monotonic()
        head = request_bytes("POST", "/v1/completions", headers={"Content-Type": "application/json", "Content-Length": "100"})
        answer = wire.send(head + b"{").answer()
        assert answer.status == 408 and answer.error["type"] == "RequestTimeoutError"
        assert 0.25 < seconds_since(began) < 3
    assert server.metric("octavo:refusals_total", 'reason="slow_sender"') == 1


def test_a_body_that_trickles_gets_408(start):
    with start(body_timeout=300, body_total_timeout=600).wire() as wire:
        head = request_bytes("POST", "/v1/completions", headers={"Content-Type": "application/json", "Content-Length": "100"})
        wire.send(head)
        for _ in range(12):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                wire.send(b" ")
            time.sleep(0.08)
        assert wire.answer().status == 408


def test_an_idle_connection_is_closed_without_a_word(start):
    with start(idle_timeout=300).wire() as wire:
        assert wire.send(VERSION).answer().status == 200
        began = time.monotonic()
        assert wire.at_end(within=3)
        assert 0.2 < seconds_since(began)


def test_a_reader_that_reads_nothing_is_ended(start):
    """The engine does not wait for the client."""
    server = start(write_timeout=500, max_model_len=16_000, pages=2048, max_num_seqs=4)
    body = ENDLESS | {"stream": True, "max_tokens": 15_000, "logprobs": 5}
    with server.wire(receive_buffer=2048) as wire:
        wire.send(request_bytes("POST", "/v1/completions", body)).head()
        began = time.monotonic()
        assert server.complete(max_tokens=5).status == 200
        while server.metric("octavo:slow_readers_total") == 0:
            assert seconds_since(began) < 30
            time.sleep(0.05)
    server.wait_for_baseline()


def test_silence_is_filled_with_comments(start):
    server = start(sse_keepalive=100, step_ms=20, wedge_token=259, wedge_seconds=1)
    answer = server.complete(prompt="<tool>", stream=True, max_tokens=2)
    assert answer.status == 200 and answer.body.count(b": keep-alive\n\n") >= 5
    assert answer.events()[-1] == "[DONE]"


def test_a_wedged_engine_turns_livez_red_and_green_again(start):
    server = start(stalled_after=1000, wedge_token=259, wedge_seconds=3)
    assert server.ask("GET", "/livez").status == 200
    with server.wire() as wire:
        wire.send(request_bytes("POST", "/v1/completions", {"prompt": "<tool>", "max_tokens": 2}))
        began = time.monotonic()
        while server.ask("GET", "/livez").status == 200:
            assert seconds_since(began) < 2.5, "the engine hangs and /livez is green"
            time.sleep(0.05)
        assert server.ask("GET", "/readyz").status == 503
        assert server.ask("GET", "/health").status == 503
        assert server.ask("GET", "/version").status == 200  # the server itself is unaffected
        assert wire.answer().status == 200
    assert server.ask("GET", "/livez").status == 200


# Limits.

def test_too_many_connections_get_503_and_the_reason(start):
    server = start(max_connections=5)
    held = [server.wire() for _ in range(5)]
    for wire in held:
        assert wire.send(VERSION).answer().status == 200
    for _ in range(20):
        # Like a real client, send the request before reading the refusal.
        with server.wire() as late:
            answer = late.send(request_bytes("POST", "/v1/completions", {"prompt": "x" * 5000})).answer()
            assert answer.status == 503 and answer.error["message"] and int(answer.headers["retry-after"]) >= 1
    for wire in held:
        wire.close()
    time.sleep(0.05)
    assert server.ask("GET", "/version").status == 200
    assert server.metric("octavo:refusals_total", 'reason="connections_full"') == 20


def test_too_many_requests_get_429_and_a_time(start):
    server = start(max_open_requests=3, step_ms=5)
    streams = [server.wire() for _ in range(3)]
    for wire in streams:
        wire.send(request_bytes("POST", "/v1/completions", ENDLESS | {"stream": True})).head()
    for _ in range(5):
        answer = server.complete(max_tokens=1)
        assert answer.status == 429 and answer.error["type"] == "RateLimitError"
        assert 1 <= int(answer.headers["retry-after"]) <= 120
    assert server.ask("GET", "/readyz").status == 503
    assert server.ask("GET", "/livez").status == 200
    for wire in streams:
        wire.close()
    server.wait_for_baseline()
    assert server.complete(max_tokens=1).status == 200
    assert server.ask("GET", "/readyz").status == 200


def test_too_many_bytes_get_429(start):
    server = start(max_open_bytes=100_000)
    answer = server.complete(prompt="x" * 200_000)
    assert answer.status == 429 and int(answer.headers["retry-after"]) >= 1
    assert server.complete(max_tokens=1).status == 200


# Keys and origins.

def test_every_route_but_health_and_page_needs_the_key(start):
    server = start(api_key="secret")
    paths = server.ask("GET", "/openapi.json", headers={"x-api-key": "secret"}).json()["paths"]
    open_paths = {"/livez", "/readyz", "/health", "/ping", "/api/hello"}
    assert open_paths < set(paths)
    for path, operations in paths.items():
        for method in operations:
            status = server.ask(method.upper(), path.replace("{model}", "fake")).status
            assert (status == 401) == (path not in open_paths), (method, path, status)
    for path in ("/openapi.json", "/nothing", "/v1/models/fake"):
        answer = server.ask("GET", path)
        assert answer.status == 401 and answer.headers["www-authenticate"] == "Bearer"
    assert server.ask("GET", "/").status == server.ask("GET", "/page/app.js").status == 200
    for value in ("Bearer wrong", "Bearer ", "Bearer", "secret", "Basic secret", "Bearer secret1", "Bearer secre"):
        assert server.ask("GET", "/version", headers={"Authorization": value}).status == 401, value
    for headers in ({"Authorization": "Bearer secret"}, {"authorization": "bearer secret"}, {"X-Api-Key": "secret"}):
        assert server.ask("GET", "/version", headers=headers).status == 200, headers
    # The body of an unauthorized request is not read.
    assert server.ask("POST", "/v1/completions", "x" * 5_000_000).status == 401


def test_a_page_of_an_allowed_origin_may_ask(start):
    server = start(allowed_origins="https://good.example", api_key="secret")
    preflight = server.ask("OPTIONS", "/v1/completions", headers={
        "Origin": "https://good.example", "Access-Control-Request-Method": "POST"})
    assert preflight.status == 204
    assert preflight.headers["access-control-allow-origin"] == "https://good.example"
    assert "Authorization" in preflight.headers["access-control-allow-headers"]
    assert preflight.headers["vary"] == "Origin"
    answer = server.ask("GET", "/version", headers={"Origin": "https://good.example", "x-api-key": "secret"})
    assert answer.headers["access-control-allow-origin"] == "https://good.example"
    for origin in ("https://evil.example", "https://good.example.evil", "null"):
        assert "access-control-allow-origin" not in server.ask("GET", "/version", headers={"Origin": origin}).headers


def test_without_cors_no_origin_is_named(plain):
    assert plain.ask("OPTIONS", "/version", headers={"Origin": "https://a.example"}).status == 405
    assert not any(name.startswith("access-control")
                   for name in plain.ask("GET", "/version", headers={"Origin": "https://a.example"}).headers)


def host_status(server: Server, host: str, path: str = "/version", **headers) -> int:
    return server.ask("GET", path, headers={"Host": host} | headers).status


def test_without_keys_only_hosts_that_no_page_can_rebind_are_answered(plain):
    before = plain.metric("octavo:refusals_total", 'reason="host"')
    for host in ("127.0.0.1", f"127.0.0.1:{plain.port}", "10.0.0.7:8000", "[::1]:8000", "localhost", "LOCALHOST:1"):
        assert host_status(plain, host) == 200, host
    for path in ("/version", "/livez", "/metrics", "/", "/nothing"):
        assert host_status(plain, "evil.example:8000", path) == 403, path
    answer = plain.ask("POST", "/v1/completions", {"prompt": "hello"}, headers={"Host": "evil.example"})
    assert answer.status == 403 and "--allowed-hosts" in answer.error["message"]
    assert answer.error["type"] == "PermissionDeniedError" and answer.headers["connection"] == "close"
    assert plain.ask("GET", "/version", headers={"Host": "evil.example"}, version="1.0").status == 403
    assert plain.metric("octavo:refusals_total", 'reason="host"') == before + 7


def test_allowed_hosts_are_answered(start):
    server = start(allowed_hosts="one.test,Two.test")
    assert [host_status(server, host) for host in ("one.test:1", "two.test", "localhost", "three.test")] == [200, 200, 200, 403]
    assert host_status(start(allowed_hosts="*"), "any.test") == 200


def test_with_a_key_any_host_is_answered(start):
    server = start(api_key="secret")
    assert host_status(server, "any.test", **{"x-api-key": "secret"}) == 200
    assert host_status(server, "any.test") == 401


def test_a_wrong_host_gets_no_preflight(start):
    server = start(allowed_origins="*")
    assert server.ask("OPTIONS", "/version", headers={"Host": "evil.example", "Origin": "http://evil.example"}).status == 403


# HTTP.

def test_head_has_the_headers_and_no_body(plain):
    with plain.wire() as wire:
        head = wire.send(request_bytes("HEAD", "/version")).answer("HEAD")
        whole = wire.send(VERSION).answer()
    assert head.status == 200 and head.headers["content-length"] == str(len(whole.body))


def test_http_1_0_streams_until_the_connection_ends(plain):
    with plain.wire() as wire:
        body = {"prompt": "hello", "stream": True, "max_tokens": 5, "ignore_eos": True}
        answer = wire.send(request_bytes("POST", "/v1/completions", body, version="1.0")).answer()
        assert answer.status == 200 and "transfer-encoding" not in answer.headers
        assert answer.events()[-1] == "[DONE]" and wire.at_end()
    with plain.wire() as wire:
        keep = request_bytes("GET", "/version", headers={"Connection": "keep-alive"}, version="1.0")
        for _ in range(3):
            answer = wire.send(keep).answer()
            assert answer.status == 200 and answer.headers["connection"] == "keep-alive"


def test_a_connection_serves_request_after_request(plain):
    with plain.wire() as wire:
        for number in range(50):
            stream = number % 2 == 0
            body = {"prompt": "hello", "stream": stream, "max_tokens": 3, "ignore_eos": True, "request_id": str(number)}
            answer = wire.send(request_bytes("POST", "/v1/completions", body)).answer()
            first = answer.events()[0] if stream else answer.json()
            assert first["id"] == f"cmpl-{number}"


def test_pipelined_requests_are_answered_in_order(plain):
    with plain.wire() as wire:
        bodies = [{"prompt": "hello", "stream": n % 3 == 0, "max_tokens": 3, "ignore_eos": True, "request_id": str(n)}
                  for n in range(100)]
        wire.send(b"".join(request_bytes("POST", "/v1/completions", body) + VERSION for body in bodies))
        for number, body in enumerate(bodies):
            answer = wire.answer()
            first = answer.events()[0] if body["stream"] else answer.json()
            assert first["id"] == f"cmpl-{number}"
            assert "version" in wire.answer().json()


def test_a_pipelining_client_that_leaves_is_noticed(plain):
    """A pipelined request does not hide that the client has left."""
    plain.wait_for_baseline()
    wire = plain.wire()
    wire.send(request_bytes("POST", "/v1/completions", ENDLESS))
    while plain.pages()["referenced"] == 0:
        time.sleep(0.005)
    wire.send(VERSION)
    time.sleep(0.05)
    steps = plain.steps()
    wire.close()
    plain.wait_for_baseline()
    assert plain.steps() - steps < 700, "the answer was computed to its end after the client left"


def test_expect_is_answered_before_the_body(plain):
    body = json.dumps({"prompt": "hello", "max_tokens": 2}).encode()
    with plain.wire() as wire:
        wire.send(request_bytes("POST", "/v1/completions", headers={
            "Content-Type": "application/json", "Content-Length": str(len(body)), "Expect": "100-continue"}))
        assert wire.receive() == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert wire.send(body).answer().status == 200
    with plain.wire() as wire:  # too large: refused before the client sends anything
        wire.send(request_bytes("POST", "/v1/completions", headers={
            "Content-Type": "application/json", "Content-Length": "99999999", "Expect": "100-continue"}))
        assert wire.receive().startswith(b"HTTP/1.1 413 ")


def test_an_early_refusal_reaches_a_client_that_is_still_sending(plain):
    """The response is not lost to a reset although the rest of the body was not read."""
    for path, status in (("/nothing", 404), ("/metrics", 405)):
        with plain.wire() as wire:
            wire.send(request_bytes("POST", path, "x" * 4_000_000))
            assert wire.answer().status == status


def test_the_request_id_comes_back_when_it_is_plain(plain):
    assert plain.ask("GET", "/version", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"] == "abc-1"
    for odd in ("a b", "x" * 200, "é"):
        assert len(plain.ask("GET", "/version", headers={"X-Request-Id": odd}).headers["x-request-id"]) == 32


def test_a_second_server_cannot_take_the_port(plain):
    with pytest.raises(RuntimeError):
        Server.start(port=plain.port)


def test_wires_tell_an_early_end():
    """The test kit itself: a connection that ends early raises Closed."""
    with Server.start(header_timeout=60_000) as server, server.wire() as wire:
        wire.send(b"GET /version HTTP/1.1\r\nHost: x\r\n")
        wire.socket.shutdown(1)
        with pytest.raises(Closed):
            wire.answer()
