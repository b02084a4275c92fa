"""`octavo serve` with several models: loading by name, unloading, crashes and the memory of all models."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import model_switches
import pytest
from running_server import running

PROMPT = [5, 6, 7, 8]


def call(url: str, body: dict | None = None):
    """Returns the status and the JSON of a response."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def complete(server, model: str, **fields) -> tuple[int, dict]:
    body = {"model": model, "prompt": PROMPT, "max_tokens": 8, "temperature": 0} | fields
    return call(server.url + "/v1/completions", body)


def text_of(server, model: str, **fields) -> str:
    status, answer = complete(server, model, **fields)
    assert status == 200, answer
    assert answer["model"] == model
    return answer["choices"][0]["text"]


def loaded(server) -> dict[str, dict]:
    """The loaded models of /octavo/ps, by name. Checks that their plans fit into the budget."""
    _, ps = call(server.url + "/octavo/ps")
    assert sum(model["bytes"] for model in ps["models"]) <= ps["used_bytes"] <= ps["budget_bytes"]
    return {model["name"]: model for model in ps["models"]}


def wait_until(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    return False


@pytest.fixture(scope="module")
def no_other_models(tmp_path_factory) -> dict[str, str]:
    """An environment in which only the tests' models are found."""
    home = str(tmp_path_factory.mktemp("home"))
    return {"HOME": home, "HF_HOME": home, "HF_HUB_CACHE": home, "OLLAMA_MODELS": home, "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def models(make_model):
    return [make_model("llama"), make_model("qwen3"), make_model("qwen2")]


@pytest.fixture(scope="module")
def front(octavo, models, no_other_models):
    with running(octavo, models, "--models-max", 2, "--max-model-len", 256, "--max-num-seqs", 4,
                 env=no_other_models) as server:
        yield server


def test_models_are_loaded_by_name_and_the_least_recently_used_is_unloaded(front, models):
    a, b, c = (model.name for model in models)
    first = text_of(front, a)
    text_of(front, b)
    assert text_of(front, a) == first
    text_of(front, c)
    assert set(loaded(front)) == {a, c}
    assert text_of(front, a) == first
    text_of(front, b)
    assert set(loaded(front)) == {a, b}
    _, listed = call(front.url + "/v1/models")
    assert {card["id"]: card["status"]["value"] for card in listed["data"]} == {a: "loaded", b: "loaded", c: "unloaded"}


def test_an_unknown_model_is_404_with_the_nearest_names(front, models):
    wanted = models[0].name
    status, answer = complete(front, wanted[:-1])
    assert status == 404 and wanted in answer["error"]["message"]
    status, answer = complete(front, str(models[0].parent / "000-secret"))
    assert status == 404
    status, answer = call(front.url + "/v1/models/nothing")
    assert status == 404


def test_a_killed_process_is_started_again_and_others_are_untouched(front, models):
    a, b, _ = (model.name for model in models)
    first, other = text_of(front, a), text_of(front, b)
    before = loaded(front)
    os.kill(before[a]["pid"], signal.SIGKILL)
    assert text_of(front, a) == first
    after = loaded(front)
    assert after[a]["pid"] != before[a]["pid"] and after[b]["pid"] == before[b]["pid"]
    assert text_of(front, b) == other


def test_an_unused_model_is_unloaded_after_its_keep_alive(octavo, models, no_other_models):
    with running(octavo, models, "--keep-alive", "1s", env=no_other_models) as server:
        text_of(server, models[0].name)
        assert loaded(server)[models[0].name]["expires_in"] <= 1
        wait_until(lambda: not loaded(server))


def test_load_and_unload_with_events(front, models):
    c = models[2].name
    call(front.url + "/models/unload", {"model": c})
    wait_until(lambda: c not in loaded(front))
    events = []

    def read():
        with contextlib.suppress(OSError), urllib.request.urlopen(front.url + "/models/sse", timeout=60) as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    events.append(json.loads(line[6:]))
                if events and events[-1]["data"].get("status") == "loaded":
                    return

    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(0.3)
    assert call(front.url + "/models/load", {"model": c}) == (200, {"success": True})
    reader.join(timeout=60)
    states = [event["data"]["status"] for event in events if event["model"] == c]
    assert states[0] == "loading" and states[-1] == "loaded"
    assert call(front.url + "/models/unload", {"model": c}) == (200, {"success": True})
    wait_until(lambda: c not in loaded(front))
    assert call(front.url + "/models/unload", {"model": c})[0] == 400
    assert call(front.url + "/models/load", {"model": "nothing"})[0] == 404


def test_a_preset_has_aliases_flags_and_preloads(octavo, models, no_other_models, tmp_path):
    preset = tmp_path / "preset.toml"
    preset.write_text(f'[mine]\nmodel = "{models[0]}"\naliases = ["gpt"]\nmax-model-len = 96\npreload = true\nkeep-alive = -1\n')
    with running(octavo, [], "--preset", preset, "--models-dir", models[0].parent, env=no_other_models) as server:
        wait_until(lambda: "mine" in loaded(server) and loaded(server)["mine"]["status"] == "loaded")
        assert loaded(server)["mine"]["max_model_len"] == 96
        assert complete(server, "gpt")[0] == 200
        names = {card["id"] for card in call(server.url + "/v1/models")[1]["data"]}
        assert names == {"mine", *(model.name for model in models[0].parent.iterdir())} - {models[0].name}


def test_a_wrong_flag_in_a_preset_is_found_at_start_up(octavo, models, tmp_path):
    preset = tmp_path / "preset.toml"
    preset.write_text(f'[mine]\nmodel = "{models[0]}"\nmax-model-length = 96\n')
    done = subprocess.run([octavo, "serve", "--port", "0", "--preset", preset], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "[mine]" in done.stderr and "--max-model-length" in done.stderr, done.stderr


def test_a_model_that_does_not_fit_is_refused_with_the_flag_to_change(octavo, models, no_other_models):
    with running(octavo, models, "--memory-limit", "400MiB", env=no_other_models) as server:
        status, answer = complete(server, models[0].name)
        assert status == 400 and "--memory-fraction" in answer["error"]["message"], answer


def test_a_damaged_model_gets_the_error_of_its_process(octavo, models, no_other_models, tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + bytes(100))
    with running(octavo, [models[0], tmp_path / "bad.gguf"], env=no_other_models) as server:
        status, answer = complete(server, "bad")
        assert status == 400 and "bad.gguf" in answer["error"]["message"], answer
        assert complete(server, models[0].name)[0] == 200
        cards = {card["id"]: card["status"] for card in call(server.url + "/v1/models")[1]["data"]}
        assert cards["bad"]["failed"] and cards["bad"]["value"] == "unloaded"


def test_children_end_with_a_front_that_is_killed(octavo, models, no_other_models):
    with running(octavo, models, env=no_other_models) as server:
        text_of(server, models[0].name)
        pid = loaded(server)[models[0].name]["pid"]
        server.process.kill()
        wait_until(lambda: not is_alive(pid))


def test_random_switches_stay_within_the_memory_plan(octavo, models, no_other_models):
    report = model_switches.run(str(octavo), [str(model) for model in models], 20, os.environ | no_other_models)
    assert report["most_resident_bytes"] > 0
