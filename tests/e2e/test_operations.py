"""Operating a server: named API keys and their file, limits per key, request deadlines and the delay before a drain. All tests
run with a server alone and with a front process."""

import contextlib
import signal
import time
from pathlib import Path

import pytest
from server_kit import Server, Wire, fake_server_path, request_bytes
from test_front_relay import Child

OF_THE_MODEL = {"step_ms", "max_model_len", "pages", "stick_word", "stick_ms"}
ENDLESS = {"prompt": "hello", "max_tokens": 900, "ignore_eos": True, "temperature": 1, "seed": 1}


@pytest.fixture(params=["alone", "front"])
def start(request, build_dir, tmp_path):
    """start(**flags) runs a fake server, or a front with one as its child, until the test ends."""
    with contextlib.ExitStack() as stack:
        def run(**flags) -> Server:
            if request.param == "alone":
                return stack.enter_context(Server.start(**flags))
            command = [fake_server_path()]
            for name in OF_THE_MODEL & flags.keys():
                command += [f"--{name.replace('_', '-')}", flags.pop(name)]
            child = Child(command, tmp_path / "child")
            stack.callback(child.end)
            return stack.enter_context(Server.start(
                build_dir / "tests" / "fake_front", child=f"fake={tmp_path / 'child'}", **flags))
        yield run


@pytest.fixture
def keys(tmp_path) -> Path:
    path = tmp_path / "keys"
    path.write_text("# tests\nalice:key-a\nbob:key-b\nkey-c\n")
    return path


def complete(server: Server, key: str, timeout: str | None = None, **fields):
    headers = {"Authorization": f"Bearer {key}"} | ({"x-request-timeout": timeout} if timeout else {})
    return server.ask("POST", "/v1/completions", {"prompt": "hello " * 20, "max_tokens": 3, "ignore_eos": True} | fields, headers)


def stream(server: Server, key: str = "") -> Wire:
    """Starts an answer of 900 tokens."""
    wire = server.wire()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    wire.send(request_bytes("POST", "/v1/completions", ENDLESS | {"stream": True}, headers)).head()
    wire.chunk()
    return wire


def metrics(server: Server, key: str = "key-c") -> list[str]:
    return server.ask("GET", "/metrics", headers={"x-api-key": key}).body.decode().splitlines()


def by_key(server: Server, name: str, key: str = "key-c") -> dict[str, float]:
    samples = [line for line in metrics(server, key) if line.startswith(f"octavo:{name}_by_key_total{{")]
    return {line.split('key="')[1].split('"')[0]: float(line.rsplit(" ", 1)[1]) for line in samples}


def wait_until(check, seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end
        time.sleep(0.02)


def reload(server: Server) -> None:
    server.process.send_signal(signal.SIGHUP)


# Names.

def test_requests_and_tokens_are_counted_by_the_name_of_the_key(start, keys):
    server = start(api_key_file=keys)
    assert by_key(server, "requests") == {"alice": 0, "bob": 0, "": 0}
    for key in ("key-a", "key-a", "key-b", "key-c"):
        assert complete(server, key).status == 200
    assert complete(server, "key-d").status == 401
    assert complete(server, "alice:key-a").status == 401
    requests = by_key(server, "requests")
    assert (requests["alice"], requests["bob"]) == (2, 1) and set(requests) == {"alice", "bob", ""}
    # A test client may be faster than the end of a request.
    wait_until(lambda: by_key(server, "generation_tokens").get("") == 3)
    assert by_key(server, "generation_tokens") == {"alice": 6, "bob": 3, "": 3}
    prompts = by_key(server, "prompt_tokens")
    assert prompts["alice"] == 2 * prompts["bob"] == 2 * prompts[""] > 0


def test_without_keys_nothing_is_counted_by_key(start):
    server = start()
    assert server.complete(max_tokens=1).status == 200
    assert not [line for line in metrics(server) if "_by_key_total" in line]


def test_the_name_is_in_the_access_log(start, keys, tmp_path):
    with (tmp_path / "log").open("w") as log:
        server = start(api_key_file=keys, access_log=True, stderr=log)
        for key in ("key-a", "key-c", "key-d"):
            complete(server, key)
        wait_until(lambda: (tmp_path / "log").read_text().count("path=/v1/completions") == 3)
    named, nameless, refused = [line for line in (tmp_path / "log").read_text().splitlines() if "path=/v1/completions" in line]
    assert "key=alice" in named and "key=" not in nameless and "key=" not in refused
    assert "key-" not in (tmp_path / "log").read_text()


# The file again.

def test_sighup_reads_the_keys_again(start, keys):
    server = start(api_key_file=keys, step_ms=5)
    assert complete(server, "key-b").status == 200
    with stream(server, "key-a") as wire:
        keys.write_text("bob:key-b\ncarol:key-d\n")
        reload(server)
        wait_until(lambda: complete(server, "key-d").status == 200)
        assert complete(server, "key-a").status == complete(server, "key-c").status == 401
        # A key that stays finds its cached prefix.
        cached = complete(server, "key-b").json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert cached > 0
        # The open request of a removed key goes on.
        text = b""
        while data := wire.chunk():
            text += data
        assert text.endswith(b"data: [DONE]\n\n") and b"error" not in text
    assert set(by_key(server, "requests", "key-d")) == {"bob", "carol"}


@pytest.mark.parametrize("text", ["", "a:key-a\na:key-b\n", "a:key-a\nb:key-a\n", "a:\n", None])
def test_a_bad_file_keeps_the_keys(start, keys, text, tmp_path):
    with (tmp_path / "log").open("w") as log:
        server = start(api_key_file=keys, stderr=log)
        keys.unlink() if text is None else keys.write_text(text)
        reload(server)
        wait_until(lambda: "the API keys were not changed: --api-key-file: " in (tmp_path / "log").read_text())
        assert [complete(server, key).status for key in ("key-a", "key-b", "key-c", "")] == [200, 200, 200, 401]


def test_without_a_file_sighup_ends_the_server_as_before(start):
    server = start(api_key="key-a")
    reload(server)
    assert server.process.wait(10) == -signal.SIGHUP


# Limits per key.

def test_a_key_has_a_limit_of_open_requests(start, keys):
    server = start(api_key_file=keys, max_requests_per_key=2, step_ms=5)
    with stream(server, "key-a"), stream(server, "key-a"):
        refused = complete(server, "key-a")
        assert refused.status == 429 and "--max-requests-per-key" in refused.error["message"]
        assert int(refused.headers["retry-after"]) >= 1
        # Other keys, and routes that do not generate, are not concerned.
        assert complete(server, "key-b").status == complete(server, "key-c").status == 200
        assert any('reason="key_requests_full"} 1' in line for line in metrics(server, "key-a"))
        # Nor does reading the file again forget the open requests.
        keys.write_text("alice:key-a\n")
        reload(server)
        wait_until(lambda: complete(server, "key-b").status == 401)
        assert complete(server, "key-a").status == 429
    wait_until(lambda: complete(server, "key-a").status == 200)


# Deadlines.

def running(server: Server) -> float:
    """Sequences, which hold pages."""
    return sum(float(line.rsplit(" ", 1)[1]) for line in metrics(server) if line.startswith("vllm:num_requests_running{"))


def test_a_request_past_its_deadline_gets_504_and_frees_its_pages(start):
    server = start(step_ms=10)
    began = time.monotonic()
    answer = server.ask("POST", "/v1/completions", ENDLESS, {"x-request-timeout": "0.3"})
    assert answer.status == 504 and "x-request-timeout" in answer.error["message"]
    assert answer.error["type"] == "GatewayTimeoutError"
    assert 0.3 <= time.monotonic() - began < 3
    wait_until(lambda: running(server) == 0, 3)
    assert any(line.startswith("octavo:request_timeouts_total") and line.endswith(" 1") for line in metrics(server))


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/messages"])
def test_a_stream_past_its_deadline_ends_with_an_error(start, path):
    server = start(step_ms=10)
    body = {"max_tokens": 900, "ignore_eos": True, "stream": True}
    body |= {"prompt": "hello"} if path == "/v1/completions" else {"messages": [{"role": "user", "content": "hello"}]}
    answer = server.ask("POST", path, body, {"x-request-timeout": "0.3"})
    assert answer.status == 200 and b"x-request-timeout" in answer.body
    if path == "/v1/completions":
        *_, error, done = answer.events()
        assert error["error"]["code"] == 504 and done == "[DONE]"
    else:
        assert answer.events()[-1]["error"]["type"] == "timeout_error"
    wait_until(lambda: running(server) == 0, 3)


def test_the_deadline_includes_the_preparation(start):
    server = start(stick_word="slow", stick_ms=1500)
    began = time.monotonic()
    answer = server.ask("POST", "/v1/completions", {"prompt": "slow"}, {"x-request-timeout": "0.2"})
    assert answer.status == 504 and time.monotonic() - began < 1.2


def test_a_request_within_its_deadline_is_not_concerned(start):
    answer = start().ask("POST", "/v1/completions", {"prompt": "hello", "max_tokens": 3}, {"x-request-timeout": "60.5"})
    assert answer.status == 200


def test_a_bad_deadline_is_refused(start):
    server = start()
    for value in ("0", "-1", "soon", "1s", "nan", "inf", "1e3"):
        answer = server.ask("POST", "/v1/completions", {"prompt": "hello"}, {"x-request-timeout": value})
        assert answer.status == 400 and answer.error["param"] == "x-request-timeout", value
    assert server.complete(max_tokens=1).status == 200


# The delay before a drain.

def statuses(server: Server) -> list[int]:
    return [server.ask("GET", path).status for path in ("/readyz", "/health", "/livez")]


def test_routers_are_told_before_requests_are_refused(start):
    server = start(drain_delay=1500, step_ms=2)
    assert statuses(server) == [200, 200, 200]
    began = time.monotonic()
    server.terminate()
    wait_until(lambda: statuses(server) == [503, 503, 200], 1)
    while time.monotonic() - began < 1.2:
        answer = server.complete(max_tokens=3)
        assert answer.status == 200 and answer.headers["connection"] == "close"
    with stream(server):
        wait_until(lambda: server.complete(max_tokens=1).status == 503, 2)
        assert time.monotonic() - began >= 1.4 and statuses(server) == [503, 503, 200]
    assert server.process.wait(10) == 0


def test_without_a_delay_a_drain_refuses_at_once(start):
    server = start(step_ms=5)
    with stream(server):
        server.terminate()
        wait_until(lambda: server.complete(max_tokens=1).status == 503, 1)
        assert statuses(server) == [503, 200, 200]


def test_a_second_signal_ends_the_delay(start):
    server = start(drain_delay=30_000)
    server.terminate()
    wait_until(lambda: statuses(server)[0] == 503)
    server.terminate()
    assert server.process.wait(5) == 1
