"""One request with very many sequences (prompts x n): refused above the limit, and otherwise in turns with the requests of
others. Finding 11: 65,536 sequences counted as one open request, and the next client got nothing in 30 s."""

import contextlib
import time

import pytest
from attack_kit import TooSlow, fake, post, real, request_bytes

FIRST_TOKEN_SECONDS = 2


def held(server, key: str = "", **fields):
    """A connection whose request is running or waiting. Closing it aborts the request."""
    wire = server.wire(timeout=60)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    wire.send(request_bytes("POST", "/v1/completions", {"ignore_eos": True, "temperature": 1} | fields, headers))
    return contextlib.closing(wire)


def wait_for_waiting(server, count: int, headers: dict | None = None) -> None:
    """Waits until this many sequences wait for a slot."""
    end = time.monotonic() + 60
    while True:
        lines = server.ask("GET", "/metrics", headers=headers).body.decode().splitlines()
        waiting = [float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("vllm:num_requests_waiting{")
                   or line.startswith("vllm:num_requests_waiting ")]
        if waiting and waiting[0] >= count:
            return
        assert time.monotonic() < end, f"{waiting} sequences wait, expected {count}"
        time.sleep(0.01)


def first_token_seconds(server, key: str = "") -> float:
    """Time until a newcomer's stream has its first token."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    began = time.monotonic()
    with server.wire(timeout=30) as wire:
        wire.send(request_bytes("POST", "/v1/completions", {"prompt": "A newcomer", "max_tokens": 4, "stream": True}, headers))
        answer = wire.head()
        assert answer.status == 200, answer
        assert b"data: " in wire.chunk()
    return time.monotonic() - began


def check_newcomer(server, key: str = "") -> None:
    if (took := first_token_seconds(server, key)) > FIRST_TOKEN_SECONDS:
        raise TooSlow(f"the newcomer's first token took {took:.2f} s")


def test_more_sequences_than_the_limit_are_refused():
    with fake() as server:
        status, answer = post(server, "/v1/completions", {"prompt": ["x"] * 1024, "n": 64, "max_tokens": 1})
        assert status == 400
        assert "prompts x n is 65536; at most 4096 sequences are allowed" in answer["error"]["message"]
        assert answer["error"]["param"] == "prompt"
        # What clients usually send.
        assert post(server, "/v1/completions", {"prompt": ["x"] * 100, "max_tokens": 1}).status == 200
        assert post(server, "/v1/completions", {"prompt": "x", "n": 16, "temperature": 1, "max_tokens": 1}).status == 200


def test_open_sequences_are_counted_across_requests():
    with fake(max_open_sequences=20, step_ms=5) as server:
        with held(server, prompt="hello", n=16, max_tokens=900), held(server, prompt=["a", "b"], max_tokens=900):
            wait_for_waiting(server, 10)  # of 18; the first of each request is not counted
            refused = server.complete(n=6, temperature=1, max_tokens=1)
            assert refused.status == 429 and int(refused.headers["retry-after"]) >= 1
            assert refused.error["message"].startswith("16 sequences besides the first of each request are already open")
            assert server.complete(n=21, temperature=1, max_tokens=1).status == 400
            with held(server, prompt=["a", "b", "c", "d", "e"], max_tokens=900):
                wait_for_waiting(server, 15)
                assert server.complete(n=2, temperature=1, max_tokens=1).status == 429
                assert server.complete(max_tokens=1).status == 200  # one sequence always fits
        server.wait_for_baseline()
        assert server.complete(n=20, temperature=1, max_tokens=1).status == 200
        assert server.metric("octavo:refusals_total", 'reason="queue_full"') == 2


@pytest.mark.parametrize("keys", [[], ["one", "two"]], ids=["without keys", "with keys"])
def test_a_newcomer_is_served_beside_a_thousand_prompts(keys):
    # Eight of the long answers take all slots for 9 s.
    flags = {"api_key": keys} if keys else {}
    hog, newcomer = keys or ("", "")
    with fake(step_ms=10, max_num_seqs=8, **flags) as server:
        with held(server, key=hog, prompt=["x"] * 1024, n=4, max_tokens=900):
            wait_for_waiting(server, 4000, {"Authorization": f"Bearer {hog}"} if hog else None)
            for _ in range(3):
                check_newcomer(server, newcomer)


def test_one_key_with_many_requests_leaves_slots_to_another():
    with fake(step_ms=10, max_num_seqs=4, api_key=["one", "two"]) as server, contextlib.ExitStack() as stack:
        for i in range(20):
            stack.enter_context(held(server, key="one", prompt=f"number {i}", max_tokens=900))
        wait_for_waiting(server, 16, {"Authorization": "Bearer one"})
        check_newcomer(server, "two")


def test_a_real_newcomer_is_served_beside_a_thousand_prompts():
    with real("--max-num-seqs", 16) as server:
        with held(server, prompt=["Write a long story about the sea."] * 1024, n=4, max_tokens=1000):
            wait_for_waiting(server, 4000)
            for _ in range(3):
                check_newcomer(server)
