"""Files, batches and stored responses of several models: a front owns them, and its children run the lines."""

import contextlib
import random
import time

import openai
import pytest
from running_server import running
from server_kit import Server, fake_server_path
from test_batches import CHAT, ENDED, chat_body, client_of, create, line, results, wait_for
from test_front_relay import Child


@contextlib.contextmanager
def fake_children(folder, *flags):
    """Servers of the models "one" and "two"."""
    command = [fake_server_path(), "--pages", 2048, *flags]
    children = {name: Child(command, folder / name) for name in ("one", "two")}
    try:
        yield children
    finally:
        for child in children.values():
            child.end()


def front_over(build_dir, folder, **flags) -> Server:
    children = [f"{name}={folder / name}=fake" for name in ("one", "two")]
    return Server.start(build_dir / "tests" / "fake_front", child=children, state_dir=folder / "state", **flags)


def of_model(number: int, tokens: int = 8) -> dict:
    return chat_body(number, tokens) | {"model": ("one", "two")[number % 2]}


def test_lines_name_any_model(build_dir, tmp_path):
    bodies = {i: of_model(i) for i in range(40)} | {5: chat_body(5) | {"model": "three"}}
    with fake_children(tmp_path), front_over(build_dir, tmp_path) as front:
        client = client_of(front)
        batch = wait_for(client, create(client, [line(i, body) for i, body in bodies.items()]).id)
        assert batch.status == "completed" and batch.request_counts.model_dump() == {"total": 40, "completed": 39, "failed": 1}
        answers = results(client, batch.output_file_id)
        assert [answer["custom_id"] for answer in answers] == [f"line {i}" for i in bodies if i != 5]
        for number in (6, 7):
            alone = front.ask("POST", CHAT, bodies[number]).json()
            assert answers[number - 1]["response"]["body"]["choices"] == alone["choices"]
        [refused] = results(client, batch.error_file_id)
        assert (refused["custom_id"], refused["response"]["status_code"]) == ("line 5", 404)
        assert "/v1/batches" in front.ask("GET", "/openapi.json").json()["paths"]


@pytest.mark.parametrize("victim", ["front", "child"])
def test_every_line_is_answered_once_after_kills(build_dir, tmp_path, victim):
    count, interrupted, seed = 100, 0, random.Random(7)
    with fake_children(tmp_path, "--step-ms", 3) as children:
        front = front_over(build_dir, tmp_path, batch_concurrency=4)
        batch_id = create(client_of(front), [line(i, of_model(i)) for i in range(count)]).id
        for _ in range(6):
            time.sleep(seed.uniform(0.05, 0.15))
            interrupted += front.ask("GET", f"/v1/batches/{batch_id}").json()["status"] not in ENDED
            if victim == "front":
                front.process.kill()
                front.process.wait()
                front = front_over(build_dir, tmp_path, batch_concurrency=4)
            else:
                children["one"].kill()
                children["one"].start()
        assert interrupted >= 3, "the batch was too fast to be interrupted"
        with front:
            client = client_of(front)
            batch = wait_for(client, batch_id)
            assert batch.status == "completed" and batch.request_counts.completed == count, batch
            answers = results(client, batch.output_file_id)
            assert [answer["custom_id"] for answer in answers] == [f"line {i}" for i in range(count)]
            assert answers[60]["response"]["body"]["choices"] == front.ask("POST", CHAT, of_model(60)).json()["choices"]


def test_chats_go_before_lines_of_batches(build_dir, tmp_path):
    with fake_children(tmp_path, "--step-ms", 3, "--max-num-seqs", 4), front_over(build_dir, tmp_path, batch_concurrency=4) as front:
        client = client_of(front)
        batch = create(client, [line(i, chat_body(i, 300) | {"model": "one"}) for i in range(8)])
        wait_for(client, batch.id, ("in_progress",))
        time.sleep(0.3)  # all slots are taken
        began = time.monotonic()
        # What a client sends in the front's own header has no effect.
        answer = front.ask("POST", CHAT, chat_body(100, 20) | {"model": "one"}, {"x-octavo-background": "true"})
        assert answer.status == 200
        assert time.monotonic() - began < 0.5, "it waited for a line to end"  # 20 steps of 3 ms; a line has 300
        began = time.monotonic()
        front.terminate()
        assert front.process.wait(10) == 0
        assert time.monotonic() - began < 5, "a batch does not delay a shutdown"


def test_without_a_folder_the_routes_name_the_flag(build_dir, tmp_path):
    with fake_children(tmp_path), Server.start(build_dir / "tests" / "fake_front", child=f"one={tmp_path / 'one'}=fake") as front:
        answer = front.ask("GET", "/v1/files")
        assert answer.status == 501 and "--state-dir" in answer.error["message"]


def test_a_killed_server_of_real_models_goes_on(octavo, make_model, tmp_path):
    """The front and its children end and start again. Stored responses are kept, too."""
    models = [make_model("llama"), make_model("qwen3")]
    home = str(tmp_path / "home")
    env = {"HOME": home, "HF_HOME": home, "HF_HUB_CACHE": home, "OLLAMA_MODELS": home, "HF_HUB_OFFLINE": "1"}
    flags = ("--max-model-len", 256, "--state-dir", tmp_path / "state", "--batch-concurrency", 2, "--api-key", "one", "--api-key", "two")
    count, interrupted, stored, batch_id = 240, 0, {}, None

    def body(number: int) -> dict:
        return {"model": models[number % 2].name, "prompt": [5, 6, 7 + number % 50], "max_tokens": 24, "temperature": 0, "ignore_eos": True}

    def client_for(server, key: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0)

    for round_number in range(3):
        with running(octavo, models, *flags, env=env) as server:
            client = client_for(server, "one")
            if not stored:
                stored = {model.name: client.responses.create(model=model.name, input="hello", max_output_tokens=4) for model in models}
                lines = [line(i, body(i), url="/v1/completions") for i in range(count)]
                batch_id = create(client, lines, "/v1/completions").id
            if round_number < 2:
                wait_for(client, batch_id, ("in_progress", *ENDED))
                while (batch := client.batches.retrieve(batch_id)).status not in ENDED and batch.request_counts.completed < 20 * (round_number + 1):
                    time.sleep(0.01)
                server.process.kill()
                interrupted += batch.status not in ENDED
                continue
            batch = wait_for(client, batch_id, timeout=120)
            assert batch.status == "completed" and batch.request_counts.completed == count, batch
            answers = results(client, batch.output_file_id)
            assert [answer["custom_id"] for answer in answers] == [f"line {i}" for i in range(count)]
            for number in (20, 31):
                alone = client.completions.create(**{k: v for k, v in body(number).items() if k != "ignore_eos"}, extra_body={"ignore_eos": True})
                assert answers[number]["response"]["body"]["choices"][0]["text"] == alone.choices[0].text
            for name, response in stored.items():
                assert client.responses.retrieve(response.id).output_text == response.output_text
                more = client.responses.create(model=name, input="more", previous_response_id=response.id, max_output_tokens=2)
                assert more.usage.input_tokens > response.usage.input_tokens
                with pytest.raises(openai.NotFoundError):
                    client_for(server, "two").responses.retrieve(response.id)
    assert interrupted >= 1, "the batch was too fast to be interrupted"
