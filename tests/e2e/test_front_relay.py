"""The front's relay with real children: its streams have a direct server's bytes, also if a child is killed in the middle."""

import json
import os
import re
import secrets
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from server_kit import Server, fake_server_path, request_bytes
from test_resume import CASES

SEEDED = {"seed": 11}


def without_times(body: bytes) -> bytes:
    return re.sub(rb'"created(_at)?":\d+', b"", body)


class Child:
    """A server on a Unix socket, which can be killed and started again."""

    def __init__(self, command: list, socket: Path):
        self.command = [str(part) for part in (*command, "--uds", socket, "--behind-front")]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            if line.split()[:1] == ["listening"]:
                break
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def relay(tmp_path_factory, build_dir):
    """A front over the fake model (its name is "fake") and another one of the name "other"."""
    folder = tmp_path_factory.mktemp("front")
    command = [fake_server_path(), "--max-model-len", 2048, "--pages", 2048, "--step-ms", 2]
    children = {name: Child(command, folder / name) for name in ("fake", "other")}
    flags = {"child": [f"{name}={folder / name}=fake" for name in children]}
    with Server.start(build_dir / "tests" / "fake_front", **flags) as front, Server.start(
            max_model_len=2048, pages=2048, step_ms=2) as direct:
        yield front, direct, children
    for child in children.values():
        child.end()


def body_of(name: str) -> tuple[str, dict]:
    path, body = CASES[name]
    return path, body | SEEDED | {"cache_salt": name}


def request_id(body: dict) -> dict:
    """The same for the same request: answers carry it."""
    return {"X-Request-Id": body["cache_salt"].replace(" ", "-")}


def ask(server: Server, path: str, body: dict) -> bytes:
    answer = server.ask("POST", path, body, request_id(body), timeout=120)
    assert answer.status == 200 and answer.whole, answer.body
    return without_times(answer.body)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_bytes_are_those_of_a_direct_server(relay, name, stream):
    front, direct, _ = relay
    path, body = body_of(name)
    if not stream:
        body.pop("stream_options", None)
    body |= {"stream": stream, "cache_salt": f"{name} {stream}"}
    through = ask(front, path, body | {"model": "fake"})
    assert b"octavo tokens" not in through and through
    if body.get("n", 1) == 1 and not isinstance(body.get("prompt"), list):
        assert through == ask(direct, path, body)
    else:  # choices may come in another order
        assert sorted(through.split(b"\n")) == sorted(ask(direct, path, body).split(b"\n"))


def stream_with_kills(front: Server, child: Child, path: str, body: dict, cuts: list[int]) -> bytes:
    """Kills the child each time that many pieces have arrived, and starts it again."""
    with front.wire(timeout=60) as wire:
        wire.send(request_bytes("POST", path, body, request_id(body) | {"Connection": "close"}))
        answer = wire.head()
        assert answer.status == 200
        pieces = 0
        while piece := wire.chunk():
            answer.body += piece
            pieces += 1
            if pieces in cuts:
                child.kill()
                child.start()
    return without_times(answer.body)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("choices", "choices that end", "prompts")])
def test_a_stream_goes_on_after_its_child_was_killed(relay, name):
    front, direct, children = relay
    path, body = body_of(name)
    body |= {"stream": True, "cache_salt": secrets.token_hex(8)}
    whole = ask(direct, path, body)
    cut = 1 + len(name) % 6  # another one for each case
    assert stream_with_kills(front, children["fake"], path, body | {"model": "fake"}, [cut]) == whole


def test_a_second_kill_ends_the_stream_with_an_error(relay):
    front, _, children = relay
    path, body = body_of("greedy")
    got = stream_with_kills(front, children["fake"], path, body | {"stream": True, "model": "fake"}, [3, 6])
    assert b"ended twice" in got and got.endswith(b"data: [DONE]\n\n")


def test_neighbours_and_whole_answers_survive_a_kill(relay):
    front, direct, children = relay
    path, body = body_of("completion")
    plain = {field: value for field, value in body.items() if field != "stream_options"}
    requests = {(number, stream): (body if stream else plain) | {"stream": stream, "cache_salt": f"{number} {stream} neighbours",
                                                                "prompt": f"{number}", "max_tokens": 120}
                for number in range(4) for stream in (True, False)}
    got: dict[tuple, bytes] = {}

    def run(name: str, key: tuple) -> None:
        got[name, *key] = ask(front, path, requests[key] | {"model": name})

    threads = [threading.Thread(target=run, args=(name, key)) for name in children for key in requests]
    for thread in threads:
        thread.start()
    time.sleep(0.15)
    children["fake"].kill()
    children["fake"].start()
    for thread in threads:
        thread.join()
    assert front.metric("octavo:front_resumed_streams_total") + front.metric("octavo:front_resent_requests_total") > 0
    for key, request in requests.items():
        assert got["fake", *key] == got["other", *key] == ask(direct, path, request), key


def test_routes_and_models(relay):
    front, direct, _ = relay
    missing = front.ask("POST", "/v1/completions", {"prompt": "x"})
    assert missing.status == 400 and "fake, other" in missing.error["message"]
    assert front.ask("POST", "/v1/completions", {"prompt": "x", "model": "none"}).status == 404
    tokens = front.ask("POST", "/tokenize", {"prompt": "hello", "model": "other"}).json()
    assert tokens == direct.ask("POST", "/tokenize", {"prompt": "hello"}).json()
    stored = front.ask("POST", "/v1/responses", {"input": "hello", "model": "fake", "max_output_tokens": 2}).json()
    assert front.ask("GET", f"/v1/responses/{stored['id']}").json() == stored
    assert front.ask("DELETE", f"/v1/responses/{stored['id']}").json()["deleted"]
    assert front.ask("GET", f"/v1/responses/{stored['id']}").status == 404
    metrics = front.ask("GET", "/metrics").body.decode()
    assert len(re.findall(r"^# TYPE vllm:prompt_tokens_total counter$", metrics, re.MULTILINE)) == 1
    assert front.ask("GET", "/readyz").status == 200 and front.ask("GET", "/").status == 200
    assert "/v1/messages" in front.ask("GET", "/openapi.json").json()["paths"]


def test_children_separate_the_keys_of_the_front(build_dir, tmp_path):
    child = Child([fake_server_path()], tmp_path / "s")
    with Server.start(build_dir / "tests" / "fake_front", child=f"fake={tmp_path / 's'}", api_key=["one", "two"]) as front:

        def ask_as(key: str, method: str, path: str, body: dict | None = None):
            # The second header is the front's own: what a client sends in it has no effect.
            return front.ask(method, path, body, {"Authorization": f"Bearer {key}", "x-octavo-tenant": "0" * 128})

        def cached(key: str) -> int:
            usage = ask_as(key, "POST", "/v1/completions", {"prompt": "hello " * 50, "max_tokens": 1}).json()["usage"]
            return usage["prompt_tokens_details"]["cached_tokens"]

        assert [cached("one"), cached("two")] == [0, 0] and cached("one") > 0 and cached("two") > 0
        stored = ask_as("one", "POST", "/v1/responses", {"input": "hello", "max_output_tokens": 2}).json()["id"]
        assert ask_as("one", "GET", f"/v1/responses/{stored}").status == 200
        assert ask_as("two", "GET", f"/v1/responses/{stored}").status == 404
        more = {"input": "more", "previous_response_id": stored, "max_output_tokens": 2}
        assert ask_as("two", "POST", "/v1/responses", more).status == 404
        assert ask_as("one", "POST", "/v1/responses", more).status == 200
        assert ask_as("three", "GET", "/v1/responses/x").status == 401
    child.end()


def test_a_client_that_leaves_frees_the_child(relay):
    front, _, _ = relay
    body = {"prompt": "x", "model": "other", "max_tokens": 1500, "ignore_eos": True, "stream": True}
    with front.wire() as wire:
        wire.send(request_bytes("POST", "/v1/completions", body))
        wire.head(), wire.chunk()
        assert running(front) >= 1
    end = time.monotonic() + 5
    while front.ask("GET", "/load").json()["server_load"] != 0 or running(front) != 0:
        assert time.monotonic() < end
        time.sleep(0.02)


def running(front: Server) -> float:
    lines = front.ask("GET", "/metrics").body.decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("vllm:num_requests_running{"))


def test_smollm2_goes_on_after_a_kill(octavo, smollm2_gguf, build_dir, tmp_path):
    """With the real model: the stream of a killed child and one that was not cut have the same text."""
    socket = tmp_path / "s"
    child = Child([octavo, "serve", smollm2_gguf, "--served-model-name", "smol", "--max-model-len", 512, "--kv-memory",
                   "64MiB"], socket)
    body = {"model": "smol", "messages": [{"role": "user", "content": "Tell me about the sea."}], "temperature": 1, "seed": 5,
            "max_tokens": 40, "stream": True, "stream_options": {"include_usage": True}}
    with Server.start(build_dir / "tests" / "fake_front", child=f"smol={socket}") as front:
        whole = ask(front, "/v1/chat/completions", body | {"cache_salt": "one"})
        cut = stream_with_kills(front, child, "/v1/chat/completions", body | {"cache_salt": "two"}, [7])
        assert cut.replace(b"chatcmpl-two", b"chatcmpl-one") == whole and b'"completion_tokens":40' in whole
    child.end()


def test_the_socket_of_a_live_server_is_refused(octavo, make_model, tmp_path):
    model = make_model("llama")
    socket = tmp_path / "s"
    child = Child([octavo, "serve", model], socket)
    assert oct(os.stat(socket).st_mode)[-3:] == "600"
    again = subprocess.run([octavo, "serve", model, "--uds", socket], capture_output=True, text=True)
    assert again.returncode != 0 and "another server is listening there" in again.stderr
    done = subprocess.run(["curl", "-s", "--unix-socket", socket, "http://localhost/v1/models"], capture_output=True)
    assert json.loads(done.stdout)["data"]
    child.kill()
    child.start()  # replaces the stale file
    child.process.terminate()
    assert child.process.wait(30) == 0 and not socket.exists()
