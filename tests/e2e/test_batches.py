"""/v1/files and /v1/batches through OpenAI's client, with the fake engine: complete and right results, errors, cancelling,
owners, limits, and restarts at any moment."""

import io
import json
import random
import signal
import sqlite3
import time

import httpx
import openai
import pytest
import running_server
from openai.types import Batch, FileObject
from sdk_types import checked
from server_kit import Server

CHAT = "/v1/chat/completions"
ENDED = ("completed", "failed", "expired", "cancelled")


def client_of(server: Server, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key=key, max_retries=0)


def chat_body(number: int, tokens: int = 8) -> dict:
    return {"model": "fake", "messages": [{"role": "user", "content": f"question {number}"}], "max_tokens": tokens,
            "seed": number, "temperature": 1, "ignore_eos": True}


def line(number: int, body: dict | None = None, **changes) -> str:
    fields = {"custom_id": f"line {number}", "method": "POST", "url": CHAT, "body": body or chat_body(number)}
    return json.dumps(fields | changes)


def upload(client: openai.OpenAI, lines: list[str]) -> str:
    return client.files.create(file=("input.jsonl", "\n".join(lines).encode()), purpose="batch").id


def create(client: openai.OpenAI, lines: list[str], endpoint: str = CHAT, window: str = "24h", **fields) -> Batch:
    return client.batches.create(input_file_id=upload(client, lines), endpoint=endpoint, completion_window=window, **fields)


def wait_for(client: openai.OpenAI, batch_id: str, statuses=ENDED, timeout: float = 60) -> Batch:
    end = time.monotonic() + timeout
    while (batch := client.batches.retrieve(batch_id)).status not in statuses:
        assert time.monotonic() < end, batch
        time.sleep(0.02)
    return batch


def results(client: openai.OpenAI, file_id: str | None) -> list[dict]:
    return [json.loads(text) for text in client.files.content(file_id).text.splitlines()] if file_id else []


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server.start(state_dir=tmp_path_factory.mktemp("state"), pages=2048) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    return client_of(server)


def test_200_lines_are_answered_as_single_requests_are(server, client):
    batch = create(client, [line(i) for i in range(200)], metadata={"job": "nightly"})
    assert batch.status == "validating" and batch.metadata == {"job": "nightly"}
    batch = wait_for(client, batch.id)
    checked(Batch, batch.model_dump())
    assert batch.status == "completed" and batch.error_file_id is None, batch
    assert batch.request_counts.model_dump() == {"total": 200, "completed": 200, "failed": 0}
    assert batch.created_at <= batch.in_progress_at <= batch.finalizing_at <= batch.completed_at
    answers = results(client, batch.output_file_id)
    assert [answer["custom_id"] for answer in answers] == [f"line {i}" for i in range(200)]
    assert len({answer["id"] for answer in answers}) == 200
    for number in (0, 77, 199):
        alone = server.ask("POST", CHAT, chat_body(number)).json()
        response = answers[number]["response"]
        assert response["status_code"] == 200 and answers[number]["error"] is None
        assert response["body"]["choices"] == alone["choices"]


def test_200_lines_of_a_real_model(octavo, make_model, tmp_path):
    """The same text as alone and beside the batch."""
    def body(number: int) -> dict:
        return {"prompt": f"Line {number}", "max_tokens": 6, "temperature": 0, "ignore_eos": True}

    with running_server.running(octavo, make_model("llama"), "--max-model-len", 256, "--state-dir", tmp_path) as running:
        client = openai.OpenAI(base_url=f"{running.url}/v1", api_key="none")
        batch = create(client, [line(i, body(i), url="/v1/completions") for i in range(200)], "/v1/completions")
        beside = client.completions.create(model=None, prompt="Line 7", max_tokens=6, temperature=0, extra_body={"ignore_eos": True})
        batch = wait_for(client, batch.id, timeout=120)
        answers = results(client, batch.output_file_id)
        assert [answer["custom_id"] for answer in answers] == [f"line {i}" for i in range(200)]
        assert answers[7]["response"]["body"]["choices"][0]["text"] == beside.choices[0].text
        alone = client.completions.create(model=None, prompt="Line 150", max_tokens=6, temperature=0, extra_body={"ignore_eos": True})
        assert answers[150]["response"]["body"]["choices"][0]["text"] == alone.choices[0].text


def test_files_are_listed_read_and_deleted(client):
    content = ("x" * 1000 + "\r\n") * 3000 + "--end"  # several chunks
    file = client.files.create(file=("große \"datei\".jsonl", io.BytesIO(content.encode())), purpose="batch")
    checked(FileObject, file.model_dump())
    assert file.bytes == len(content) and file.purpose == "batch" and "datei" in file.filename
    other = upload(client, ["{}"])
    assert client.files.content(file.id).read() == content.encode()
    assert client.files.retrieve(file.id) == file
    newest = client.files.list(limit=1)
    assert [item.id for item in newest.data] == [other] and newest.has_more
    assert [item.id for item in client.files.list(limit=1, after=other).data] == [file.id]
    assert client.files.list(purpose="batch_output", order="asc").data != [file]
    assert client.files.delete(file.id).deleted
    for missing in (client.files.retrieve, client.files.content, client.files.delete):
        with pytest.raises(openai.NotFoundError):
            missing(file.id)


def test_a_line_that_is_refused_is_in_the_error_file(client):
    bodies = {1: chat_body(1) | {"model": "other"}, 3: chat_body(3) | {"top_p": 7}}
    batch = wait_for(client, create(client, [line(i, bodies.get(i)) for i in range(5)]).id)
    assert batch.status == "completed"
    assert batch.request_counts.model_dump() == {"total": 5, "completed": 3, "failed": 2}
    assert [answer["custom_id"] for answer in results(client, batch.output_file_id)] == ["line 0", "line 2", "line 4"]
    errors = results(client, batch.error_file_id)
    assert [(error["custom_id"], error["response"]["status_code"]) for error in errors] == [("line 1", 404), ("line 3", 400)]
    assert "top_p" in errors[1]["response"]["body"]["error"]["message"]


@pytest.mark.parametrize(("lines", "code", "number"), [
    ([line(0), "{"], "invalid_line", 2),
    ([line(0), line(1, url="/v1/completions")], "invalid_line", 2),
    ([line(0), line(0)], "duplicate_custom_id", 2),
    ([line(0, chat_body(0) | {"stream": True})], "invalid_line", 1),
    ([line(0, custom_id="")], "invalid_line", 1),
    ([""], "empty_file", 0),
], ids=["json", "url", "twice", "stream", "custom_id", "empty"])
def test_an_input_that_is_not_valid_fails_and_says_where(client, lines, code, number):
    batch = wait_for(client, create(client, lines).id)
    assert batch.status == "failed" and batch.output_file_id is None and batch.failed_at
    assert [(error.code, error.line) for error in batch.errors.data] == [(code, number)], batch.errors


@pytest.mark.parametrize(("fields", "param"), [
    ({"endpoint": "/v1/models"}, "endpoint"), ({"completion_window": "soon"}, "completion_window"),
    ({"input_file_id": "file-none"}, "input_file_id"), ({"metadata": {"a": 1}}, "metadata"), ({"other": 1}, "other"),
])
def test_a_batch_that_is_not_valid_is_refused(server, client, fields, param):
    body = {"input_file_id": upload(client, [line(0)]), "endpoint": CHAT, "completion_window": "24h"} | fields
    answer = server.ask("POST", "/v1/batches", body)
    assert (answer.status, answer.error["param"]) == (400, param)


def test_completions_embeddings_responses_and_scores_run_in_batches(client, tmp_path):
    completion = line(0, {"prompt": "hello", "max_tokens": 3}, url="/v1/completions")
    batch = wait_for(client, create(client, [completion], "/v1/completions").id)
    assert results(client, batch.output_file_id)[0]["response"]["body"]["object"] == "text_completion"
    response = line(0, {"input": "hello", "max_output_tokens": 3}, url="/v1/responses")
    batch = wait_for(client, create(client, [response], "/v1/responses").id)
    assert results(client, batch.output_file_id)[0]["response"]["body"]["object"] == "response"
    with Server.start(state_dir=tmp_path, pooling="mean") as embedder:
        of_embedder = client_of(embedder)
        embedding = line(0, {"input": ["a", "b"]}, url="/v1/embeddings")
        batch = wait_for(of_embedder, create(of_embedder, [embedding], "/v1/embeddings").id)
        assert len(results(of_embedder, batch.output_file_id)[0]["response"]["body"]["data"]) == 2
        for url, body, many in (("/v1/rerank", {"query": "a", "documents": ["b", "c"]}, "results"),
                                ("/v1/score", {"text_1": "a", "text_2": ["b", "c"]}, "data")):
            batch = wait_for(of_embedder, create(of_embedder, [line(0, body, url=url)], url).id)
            assert len(results(of_embedder, batch.output_file_id)[0]["response"]["body"][many]) == 2


def test_a_cancelled_batch_has_every_line_once(tmp_path):
    with Server.start(state_dir=tmp_path, step_ms=2, batch_concurrency=4) as slow:
        client = client_of(slow)
        batch = create(client, [line(i, chat_body(i, 30)) for i in range(100)])
        while client.batches.retrieve(batch.id).request_counts.completed < 8:
            time.sleep(0.02)
        assert client.batches.cancel(batch.id).status in ("cancelling", "cancelled")
        batch = wait_for(client, batch.id)
        assert batch.status == "cancelled" and batch.cancelling_at <= batch.cancelled_at
        answered, cancelled = results(client, batch.output_file_id), results(client, batch.error_file_id)
        assert len(answered) == batch.request_counts.completed >= 8
        assert {one["error"]["code"] for one in cancelled} == {"batch_cancelled"}
        assert sorted(int(one["custom_id"][5:]) for one in answered + cancelled) == list(range(100))
        with pytest.raises(openai.ConflictError):
            client.batches.cancel(batch.id)


def test_a_batch_expires(tmp_path):
    with Server.start(state_dir=tmp_path, step_ms=5, batch_concurrency=2) as slow:
        client = client_of(slow)
        batch = wait_for(client, create(client, [line(i, chat_body(i, 50)) for i in range(50)], window="1s").id)
        assert batch.status == "expired" and batch.expired_at
        expired = results(client, batch.error_file_id)
        assert expired and {one["error"]["code"] for one in expired} == {"batch_expired"}
        assert len(results(client, batch.output_file_id)) + len(expired) == 50


def test_other_keys_see_nothing(tmp_path):
    with Server.start(state_dir=tmp_path, api_key=["first-key", "second-key"]) as shared:
        first, second = client_of(shared, "first-key"), client_of(shared, "second-key")
        batch = wait_for(first, create(first, [line(0)]).id)
        assert second.files.list().data == [] and second.batches.list().data == []
        with pytest.raises(openai.NotFoundError):
            second.batches.retrieve(batch.id)
        with pytest.raises(openai.NotFoundError):
            second.batches.cancel(batch.id)
        for file in (batch.input_file_id, batch.output_file_id):
            with pytest.raises(openai.NotFoundError):
                second.files.content(file)
        with pytest.raises(openai.BadRequestError):
            second.batches.create(input_file_id=batch.input_file_id, endpoint=CHAT, completion_window="24h")
        assert [one.id for one in first.batches.list().data] == [batch.id]


def test_every_line_is_answered_once_after_kills_at_any_moment(tmp_path):
    count, interrupted, seed = 120, 0, random.Random(5)
    flags = {"state_dir": tmp_path, "step_ms": 3, "pages": 2048, "batch_concurrency": 4}
    with Server.start(**flags) as first:
        batch_id = create(client_of(first), [line(i) for i in range(count)]).id
        first.process.kill()
        first.process.wait()
    for _ in range(10):
        with Server.start(**flags) as running:
            time.sleep(seed.uniform(0, 0.2))
            interrupted += running.ask("GET", f"/v1/batches/{batch_id}").json()["status"] not in ENDED
            running.process.kill()
            running.process.wait()
    assert interrupted >= 3, "the batch was too fast to be interrupted"
    with Server.start(**flags) as last:
        client = client_of(last)
        batch = wait_for(client, batch_id)
        assert batch.status == "completed" and batch.request_counts.completed == count, batch
        answers = results(client, batch.output_file_id)
        assert [answer["custom_id"] for answer in answers] == [f"line {i}" for i in range(count)]
        alone = last.ask("POST", CHAT, chat_body(60)).json()
        assert answers[60]["response"]["body"]["choices"] == alone["choices"]


def test_a_shutdown_interrupts_a_batch_and_the_next_start_continues_it(tmp_path):
    flags = {"state_dir": tmp_path, "step_ms": 5, "batch_concurrency": 4}
    with Server.start(**flags) as first:
        batch_id = create(client_of(first), [line(i, chat_body(i, 40)) for i in range(20)]).id
        wait_for(client_of(first), batch_id, ("in_progress",))
        began = time.monotonic()
        first.terminate()
        assert first.process.wait(10) == 0
        assert time.monotonic() - began < 5, "a batch does not delay a shutdown"
    with Server.start(**flags | {"step_ms": 0}) as second:
        assert wait_for(client_of(second), batch_id).request_counts.completed == 20


def test_chats_go_before_lines_of_batches(tmp_path):
    with Server.start(state_dir=tmp_path, step_ms=3, max_num_seqs=4, batch_concurrency=4) as busy:
        client = client_of(busy)
        batch = create(client, [line(i, chat_body(i, 300)) for i in range(8)])
        wait_for(client, batch.id, ("in_progress",))
        time.sleep(0.3)  # all slots are taken
        began = time.monotonic()
        answer = busy.ask("POST", CHAT, chat_body(100, 20))
        took = time.monotonic() - began
        assert answer.status == 200
        assert took < 0.5, "it waited for a line to end"  # 20 steps of 3 ms; a line has 300
        client.batches.cancel(batch.id)


def test_stored_responses_survive_a_restart(tmp_path):
    fields = {"model": "fake", "max_output_tokens": 5}
    flags = {"state_dir": tmp_path, "api_key": ["first-key", "second-key"]}
    with Server.start(**flags) as first:
        client = client_of(first, "first-key")
        kept = client.responses.create(input="hello", **fields)
        deleted = client.responses.create(input="bye", **fields)
        client.responses.delete(deleted.id)
        follow = client.responses.create(input="more", previous_response_id=kept.id, **fields)
        first.terminate()
        first.process.wait(10)
    with Server.start(**flags) as second:
        client = client_of(second, "first-key")
        assert client.responses.retrieve(kept.id).output_text == kept.output_text
        again = client.responses.create(input="more", previous_response_id=kept.id, **fields)
        assert again.usage.input_tokens == follow.usage.input_tokens
        assert client.responses.retrieve(follow.id).previous_response_id == kept.id
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(deleted.id)
        with pytest.raises(openai.NotFoundError):
            client_of(second, "second-key").responses.retrieve(kept.id)


def test_without_a_folder_the_routes_name_the_flag_and_nothing_is_written():
    with Server.start() as plain:
        for method, path, body in [("GET", "/v1/files", None), ("GET", "/v1/batches", None), ("GET", "/v1/files/x", None),
                                   ("POST", "/v1/batches", {"input_file_id": "x"}), ("POST", "/v1/batches/x/cancel", None)]:
            answer = plain.ask(method, path, body)
            assert answer.status == 501 and "--state-dir" in answer.error["message"], path
        with pytest.raises(openai.InternalServerError, match="--state-dir"):
            upload(client_of(plain), [line(0)])
        with pytest.raises(openai.InternalServerError, match="--state-dir"):  # larger than any other body
            client_of(plain).files.create(file=("large.jsonl", bytes(9 << 20)), purpose="batch")


def test_uploads_are_limited(tmp_path):
    with Server.start(state_dir=tmp_path, max_file_bytes=3_000_000, state_max_bytes=8_000_000) as small:
        client = client_of(small)
        with pytest.raises(openai.APIStatusError) as large:
            client.files.create(file=("a", b"x" * 3_000_001), purpose="batch")
        assert large.value.status_code == 413
        with pytest.raises(openai.APIStatusError) as full:
            for _ in range(5):
                client.files.create(file=("a", b"x" * 2_900_000), purpose="batch")
        assert full.value.status_code == 413 and "--state-max-bytes" in str(full.value)
        assert len(client.files.list().data) == 3, "the file that was refused is not kept"
        client.files.delete(client.files.list().data[0].id)
        client.files.create(file=("a", b"x" * 1_000_000), purpose="batch")
        # Other bodies have their own, smaller limit.
        assert small.ask("POST", CHAT, "x" * (9 << 20)).status == 413


@pytest.mark.parametrize(("data", "files"), [
    ({}, {"file": ("a", b"x")}), ({"purpose": "assistants"}, {"file": ("a", b"x")}), ({"purpose": "batch"}, {"other": ("a", b"x")}),
])
def test_a_form_that_is_not_an_upload_is_refused(server, data, files):
    answer = httpx.post(f"http://127.0.0.1:{server.port}/v1/files", data=data, files=files)
    assert answer.status_code == 400, answer.text


def test_pages_of_other_sites_cannot_upload(server):
    url = f"http://127.0.0.1:{server.port}"
    for origin, status in (("http://evil.example", 403), (url, 200)):
        answer = httpx.post(f"{url}/v1/files", data={"purpose": "batch"}, files={"file": ("a", b"x")}, headers={"Origin": origin})
        assert answer.status_code == status


def test_a_newer_or_damaged_database_is_refused(tmp_path):
    with Server.start(state_dir=tmp_path):
        pass
    path = tmp_path / "octavo.sqlite3"
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(RuntimeError):
        Server.start(state_dir=tmp_path)
    path.write_bytes(b"x" * 10000)
    with pytest.raises(RuntimeError):
        Server.start(state_dir=tmp_path)


def test_a_batch_stops_when_its_key_is_removed(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("key-a\nkey-b\n")
    with Server.start(api_key_file=keys, state_dir=tmp_path / "state", step_ms=5, pages=2048) as server:
        batch = create(client_of(server, "key-a"), [line(number, chat_body(number, 40)) for number in range(400)])
        wait_for(client_of(server, "key-a"), batch.id, ("in_progress",))
        keys.write_text("key-b\n")
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 10
        while server.ask("GET", "/load", headers={"x-api-key": "key-b"}).json()["server_load"] != 0:
            assert time.monotonic() < end, "lines of a removed key still run"
            time.sleep(0.02)
        keys.write_text("key-a\nkey-b\n")
        server.process.send_signal(signal.SIGHUP)
        assert wait_for(client_of(server, "key-a"), batch.id).request_counts.completed == 400
