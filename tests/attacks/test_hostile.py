"""Random hostile inputs, each with a normal stream running: no request takes more than 2 s or 300 MB, delays the stream by more
than 250 ms, or gets a 500, and the server still works afterwards."""

import json
import os
import subprocess
import threading
import time
from pathlib import Path

import hostile_inputs
import pytest
from attack_kit import MB, AttackedServer, Neighbour, Reply, TooSlow, bounded, neighbour, peak_bytes, post, reset_peak
from server_kit import REPO
from slow_tests import repeats, seeds

COUNT = repeats(in_ci=50, by_hand=2_000)  # of each kind; 100 would take more than a minute in CI
SECONDS, GROWTH_MB = 2, 300
TRIES = 3  # for a bound of time, which another process on the same cores may cause to be missed


def completion(constraint: dict, seed: int) -> dict:
    """Some requests sample several outputs, which share the constraint."""
    return {"prompt": "Once", "max_tokens": 4, "temperature": 1, "seed": seed, "n": 8 if seed % 5 == 0 else 1,
            "structured_outputs": constraint}


def request(kind: str, seed: int) -> tuple[str, bytes]:
    """Path and body of one attack."""
    made = hostile_inputs.make(kind, seed)
    if kind == "bodies":
        return "/v1/chat/completions", made
    name = {"grammars": "grammar", "regexes": "regex", "schemas": "json"}[kind]
    return "/v1/completions", json.dumps(completion({name: made}, seed)).encode()


def attack(server: AttackedServer, stream: Neighbour, path: str, body: bytes) -> Reply:
    for left in reversed(range(TRIES)):
        try:
            with bounded(server, seconds=SECONDS, growth_mb=GROWTH_MB, beside=stream):
                return post(server, path, body)
        except TooSlow:
            if left == 0:
                raise
    raise AssertionError("unreachable")


@pytest.mark.parametrize("kind", ["grammars", "regexes", "schemas", "bodies"])
def test_hostile_requests(server, kind):
    statuses: dict[int, int] = {}
    with neighbour(server) as stream:
        for seed in seeds(COUNT):
            path, body = request(kind, seed)
            try:
                reply = attack(server, stream, path, body)
            except AssertionError as error:
                # Not a TooSlow: this input had its tries, so the whole test is not run again.
                raise AssertionError(f'hostile_inputs.make("{kind}", {seed}): {error}') from None
            assert reply.status != 500, f'hostile_inputs.make("{kind}", {seed}): {reply}'
            statuses[reply.status] = statuses.get(reply.status, 0) + 1
    assert server.alive()
    assert post(server, "/v1/completions", {"prompt": "Once", "max_tokens": 2}).status == 200
    # Some inputs are accepted and some refused, so the limits are neither absent nor refuse everything.
    assert len(statuses) > 1, statuses
    assert kind == "bodies" or statuses.get(200, 0) >= COUNT / 20, statuses


class TextProbe:
    """tests/programs/text_probe, which renders templates: the server takes them from the model's files only."""

    def __init__(self):
        path = Path(os.environ.get("OCTAVO_BUILD", REPO / "build" / "release")) / "tests" / "text_probe"
        assert path.exists(), f"{path} is not built"
        self.process = subprocess.Popen([str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def render(self, template: str) -> tuple[dict, float]:
        """The answer and the seconds it took. The process is killed if it takes far too long."""
        watchdog = threading.Timer(20, self.process.kill)
        watchdog.start()
        line = json.dumps({"op": "render", "size_only": True, "template": template, "messages": [{"role": "user", "content": "hi"}],
                           "options": {"add_generation_prompt": True}}).encode()
        began = time.monotonic()
        try:
            self.process.stdin.write(line + b"\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        finally:
            watchdog.cancel()
        took = time.monotonic() - began
        assert answer, f"text_probe exited with {self.process.wait(5)} after {took:.1f} s"
        return json.loads(answer), took

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(30)


@pytest.fixture(scope="module")
def probe():
    made = TextProbe()
    yield made
    made.close()


def test_hostile_templates(probe):
    texts = errors = 0
    for seed in seeds(COUNT):
        template = hostile_inputs.make("templates", seed)
        name = f'hostile_inputs.make("templates", {seed})'
        for left in reversed(range(TRIES)):
            reset_peak(probe.process.pid)
            before = peak_bytes(probe.process.pid)
            answer, took = probe.render(template)
            grown = peak_bytes(probe.process.pid) - before
            assert grown <= GROWTH_MB * MB, f"{name}: memory grew by {grown / MB:.0f} MB"
            if took <= SECONDS:
                break
            if left == 0:
                raise AssertionError(f"{name}: took {took:.2f} s at the last of {TRIES} tries")
        assert ("bytes" in answer) != ("error" in answer), f"{name}: {str(answer)[:300]}"
        assert answer.get("kind") != "probe", f"{name}: {str(answer)[:300]}"  # neither the file's nor the request's fault
        texts += "bytes" in answer
        errors += "error" in answer
    assert texts >= COUNT / 20 and errors >= COUNT / 20, (texts, errors)
