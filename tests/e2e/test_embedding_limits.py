"""/v1/embeddings with the fake engine: clients that leave, isolated failures, and bad requests."""

import threading
import time

import pytest
from server_kit import Server, request_bytes

PATH = "/v1/embeddings"


@pytest.fixture(scope="module")
def server():
    with Server.start(pooling="mean", step_ms=1, max_num_seqs=4, pages=256) as running:
        yield running


def embed(server, body: dict, timeout: float = 60):
    return server.ask("POST", PATH, body, timeout=timeout)


def test_many_clients_get_their_own_vectors(server):
    texts = [f"text number {i} " * (1 + i % 7) for i in range(40)]
    alone = [embed(server, {"input": text}).json()["data"][0]["embedding"] for text in texts]
    together = [None] * len(texts)

    def ask(i: int) -> None:
        together[i] = embed(server, {"input": [texts[i], texts[0]]}).json()["data"][0]["embedding"]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone
    server.wait_for_baseline()


def test_a_client_that_leaves_frees_its_pages(server):
    steps = server.steps()
    body = {"input": ["x" * 1000] * 200}
    for _ in range(5):
        with server.wire() as wire:
            wire.send(request_bytes("POST", PATH, body))
            while server.pages()["referenced"] == 0:
                pass
    server.wait_for_baseline()
    assert server.steps() - steps < 3000  # they were aborted: 1,000,000 rows would take 15,625 steps of 64
    end = time.monotonic() + 10  # pages are released shortly before the request count drops
    while server.ask("GET", "/load").json() != {"server_load": 0}:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("body, param", [
    ({}, "input"), ({"input": None}, "input"), ({"input": []}, "input"), ({"input": ""}, "input"), ({"input": 5}, "input"),
    ({"input": {"a": 1}}, "input"), ({"input": [1.5]}, "input"), ({"input": [-1]}, "input"), ({"input": [260]}, "input"),
    ({"input": ["a", 5]}, "input"), ({"input": [[1], "a"]}, "input"), ({"input": [[1], []]}, "input"),
    ({"input": ["a"] * 2049}, "input"), ({"input": "x" * 1025}, "input"), ({"input": "a", "dimensions": 0}, "dimensions"),
    ({"input": "a", "dimensions": 2}, "dimensions"), ({"input": "a", "dimensions": "3"}, "dimensions"),
    ({"input": "a", "encoding_format": "hex"}, "encoding_format"), ({"input": "a", "encoding_format": 1}, "encoding_format"),
    ({"input": "a", "truncate_prompt_tokens": 0}, "truncate_prompt_tokens"),
    ({"input": "a", "truncation_side": "top"}, "truncation_side"), ({"input": "a", "cache_salt": ""}, "cache_salt"),
    ({"input": "a", "use_activation": 1}, "use_activation"), ({"input": "a", "max_tokens": 5}, "max_tokens"),
    ({"input": "a", "messages": [{"role": "user", "content": "a"}]}, "messages"),
], ids=str)
def test_bad_request(server, body, param):
    answer = embed(server, body)
    assert answer.status == 400 and answer.error["param"] == param, answer


def test_hints_and_nulls_are_taken(server):
    answer = embed(server, {"input": "x" * 1024, "user": "me", "dimensions": None, "temperature": None, "model": "fake"})
    assert answer.status == 200 and answer.headers["x-octavo-ignored"] == "user"


def test_this_server_does_not_generate(server):
    assert server.complete().status == 400
