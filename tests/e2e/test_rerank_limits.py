"""/v1/rerank and /v1/score with the fake engine: bad requests, clients that leave, and many documents."""

import time

import pytest
from server_kit import Server, request_bytes

RERANK, SCORE = "/v1/rerank", "/v1/score"


@pytest.fixture(scope="module")
def server():
    with Server.start(pooling="score", step_ms=1, max_num_seqs=4, pages=256) as running:
        yield running


@pytest.fixture(scope="module")
def embedder():
    with Server.start(pooling="mean", step_ms=1, max_num_seqs=4, pages=256) as running:
        yield running


def rerank(server, body: dict, path: str = RERANK):
    return server.ask("POST", path, body, timeout=60)


def with_documents(documents) -> dict:
    return {"query": "q", "documents": documents}


@pytest.mark.parametrize("body, param", [
    ({}, "query"), ({"query": "q"}, "documents"), ({"documents": ["a"]}, "query"), (with_documents(None), "documents"),
    (with_documents([]), "documents"), (with_documents(5), "documents"), (with_documents([5]), "documents[0]"),
    (with_documents(["a", None]), "documents[1]"), (with_documents([["a"]]), "documents[0]"),
    (with_documents([{"a": 1}]), "documents[0]"), (with_documents([{"text": 1}]), "documents[0]"),
    (with_documents([{"text": "a", "image": "b"}]), "documents[0]"), (with_documents(["a"] * 2049), "documents"),
    (with_documents(["a", "x" * 1025]), "documents[1]"), ({"query": ["q"], "documents": ["a"]}, "query"),
    ({"query": 1, "documents": ["a"]}, "query"), ({"query": "x" * 2000, "documents": ["a"]}, "documents[0]"),
    (with_documents(["a"]) | {"top_n": -1}, "top_n"), (with_documents(["a"]) | {"top_n": 1.5}, "top_n"),
    (with_documents(["a"]) | {"return_documents": "yes"}, "return_documents"),
    (with_documents(["a"]) | {"truncate_prompt_tokens": 0}, "truncate_prompt_tokens"),
    (with_documents(["a"]) | {"truncation_side": "top"}, "truncation_side"),
    (with_documents(["a"]) | {"max_tokens_per_doc": -1}, "max_tokens_per_doc"),
    (with_documents(["a"]) | {"max_tokens_per_query": 5}, "max_tokens_per_query"),
    (with_documents(["a"]) | {"rank_fields": ["title"]}, "rank_fields"),
    (with_documents(["a"]) | {"max_chunks_per_doc": 3}, "max_chunks_per_doc"),
    (with_documents(["a"]) | {"instruction": "x"}, "instruction"), (with_documents(["a"]) | {"softmax": True}, "softmax"),
    (with_documents(["a"]) | {"use_activation": 1}, "use_activation"), (with_documents(["a"]) | {"cache_salt": ""}, "cache_salt"),
    (with_documents(["a"]) | {"max_tokens": 5}, "max_tokens"), (with_documents(["a"]) | {"text_1": "a"}, "text_1"),
], ids=lambda value: str(value)[:60])
def test_bad_rerank_request(server, body, param):
    answer = rerank(server, body)
    assert answer.status == 400 and answer.error["param"] == param, answer
    assert len(answer.body) < 4096


@pytest.mark.parametrize("body, param", [
    ({}, "text_1"), ({"text_1": "a"}, "text_2"), ({"text_2": "a"}, "text_1"), ({"text_1": [], "text_2": "a"}, "text_1"),
    ({"text_1": ["a", "b"], "text_2": "c"}, "text_1"), ({"text_1": ["a", "b"], "text_2": ["c"] * 3}, "text_1"),
    ({"text_1": "a", "text_2": ["c"] * 2049}, "text_2"), ({"text_1": "a", "queries": "a", "text_2": "b"}, "queries"),
    ({"queries": "a", "documents": "b", "items": "b"}, "items"), ({"text_1": "a", "text_2": {"content": []}}, "text_2"),
    ({"text_1": "a", "text_2": "b", "label_token_ids": [1, 2]}, "label_token_ids"),
    ({"text_1": "a", "text_2": "b", "top_n": 1}, "top_n"),
], ids=lambda value: str(value)[:60])
def test_bad_score_request(server, body, param):
    answer = rerank(server, body, SCORE)
    assert answer.status == 400 and answer.error["param"] == param, answer


def test_hints_and_nulls_are_taken(server):
    body = with_documents(["a"]) | {"user": "me", "top_n": None, "rank_fields": None, "temperature": None, "model": "fake"}
    answer = rerank(server, body)
    assert answer.status == 200 and answer.headers["x-octavo-ignored"] == "user"


def test_other_endpoints_say_what_to_use(server):
    for answer in (server.complete(), server.ask("POST", "/v1/embeddings", {"input": "a"})):
        assert answer.status == 400 and "/v1/rerank" in answer.error["message"]
    assert server.ask("POST", "/api/show", {"model": "fake"}).json()["capabilities"] == []


@pytest.mark.parametrize("kind", ["server", "embedder"])
def test_many_documents_have_their_own_scores(kind, request):
    server = request.getfixturevalue(kind)
    documents = [f"document {i} " * (1 + i % 7) for i in range(300)]
    whole = rerank(server, {"text_1": "query", "text_2": documents}, SCORE).json()["data"]
    for i in range(0, 300, 23):
        assert rerank(server, {"text_1": "query", "text_2": documents[i]}, SCORE).json()["data"][0]["score"] == whole[i]["score"]
    ordered = rerank(server, {"query": "query", "documents": documents}).json()["results"]
    assert sorted(each["index"] for each in ordered) == list(range(300))
    assert all(each["document"]["text"] == documents[each["index"]] for each in ordered)
    assert all(each["relevance_score"] == whole[each["index"]]["score"] for each in ordered)
    keys = [(-each["relevance_score"], each["index"]) for each in ordered]
    assert keys == sorted(keys)
    server.wait_for_baseline()


def test_a_client_that_leaves_frees_its_pages(server):
    body = with_documents([f"{i} " + "x" * 900 for i in range(200)])
    for _ in range(3):
        with server.wire() as wire:
            wire.send(request_bytes("POST", RERANK, body))
            end = time.monotonic() + 20
            while server.pages()["referenced"] == 0:
                assert time.monotonic() < end
    server.wait_for_baseline()


def test_a_query_repeated_too_often_is_refused():
    """Each document is encoded with the query, so the body's size does not bound the tokens."""
    with Server.start(pooling="score", max_model_len=8192, max_num_batched_tokens=4096, pages=2048) as long:
        answer = rerank(long, {"query": "q " * 4000, "documents": [f"{i}" for i in range(2000)]})
        assert answer.status == 400 and answer.error["param"] == "documents" and "fewer" in answer.error["message"]
