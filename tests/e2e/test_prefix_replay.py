"""A growing conversation is computed once, for every kind of cache, and restored from disk after a restart. Every miss is
explained."""

import json
import re
import urllib.request

import pytest

import prefix_replay
import running_server
from prefix_replay import ask, conversation, make_long_context

TURNS = 20
# One family per kind of cache: all tokens, a window, latents, states.
FAMILIES = ["llama", "gemma3", "deepseek_v2", "qwen3.5-text"]


@pytest.fixture(scope="module")
def runs(octavo, tmp_path_factory):
    made = {}

    def of(family: str) -> dict:
        if family not in made:
            folder = tmp_path_factory.mktemp("replay")
            model = make_long_context(folder / "model", family, context=8192)
            asked = conversation(TURNS, first_words=900, step_words=12)
            made[family] = prefix_replay.three_runs(octavo, model, asked, folder / "pages", "--block-size", "16")
        return made[family]

    return of


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_are_the_same_however_their_beginning_came(runs, family):
    got = runs(family)
    assert len({turn.text for turn in got["cold"]}) > 1
    for name in ("cached", "restarted"):
        assert [t.text for t in got[name]] == [t.text for t in got["cold"]]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_growing_conversation_is_computed_once(runs, family):
    cached = runs(family)["cached"]
    assert prefix_replay.computed_share(cached) <= 0.05
    assert cached[0].cached == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_a_restart_reads_it_from_disk(runs, family):
    got = runs(family)
    assert got["restarted_metrics"]["octavo:prefix_disk_corrupt_pages_total"] == 0
    assert got["restarted_metrics"]["octavo:prefix_disk_restored_tokens_total"] > 0.8 * got["cold"][0].prompt
    for before, turn in zip(got["cached"], got["restarted"]):
        assert turn.cached >= before.cached
    first = got["restarted"][0]
    assert first.cached > 0.9 * first.prompt and int(first.report["disk"]) == first.cached


@pytest.mark.parametrize("family", FAMILIES)
def test_every_miss_is_explained(runs, family):
    got = runs(family)
    assert all(turn.header == f"hit=0/{turn.prompt}; miss=off" for turn in got["cold"])
    first, *later = got["cached"]
    assert first.header == f"hit=0/{first.prompt}; miss=new; at=0"
    for before, turn in zip(got["cached"], later):
        report = turn.report
        assert report["hit"] == f"{turn.cached}/{turn.prompt}"
        # The recorded message differs from what this model generated.
        assert report["miss"].split(",")[-1] == "differs"
        assert before.prompt <= int(report["at"]) <= before.prompt + 8
        # At most the page in which the answer started: a state is saved only before that page.
        assert int(report.get("lost", 0)) <= 64


@pytest.fixture(scope="module")
def server(octavo, tmp_path_factory):
    model = make_long_context(tmp_path_factory.mktemp("explain") / "model", "llama", context=4096)
    with running_server.running(octavo, model, "--block-size", "16", "--kv-memory", "4MiB") as running:
        yield running


def talk(text: str) -> list[dict]:
    return [{"role": "user", "content": text}]


def test_a_difference_is_located_for_its_owner_only_and_without_text(server):
    words = "the capital of France is Paris and the river " * 20
    first = ask(server.url, talk(words + "runs through the city"), cache_salt="mine")
    again = ask(server.url, talk(words + "was small"), cache_salt="mine")
    assert again.report["miss"] == "differs" and 0 < int(again.report["at"]) < first.prompt
    # Callers without a key share one history: the header must not quote any prompt.
    assert re.fullmatch(r"hit=\d+/\d+; miss=differs; at=\d+", again.header)
    other = ask(server.url, talk(words + "runs through the city"), cache_salt="theirs")
    assert other.cached == 0 and other.report["miss"] == "salt"


def test_the_same_prompt_again_lacks_only_its_last_page(server):
    messages = talk("once upon a time there was a small engine " * 10)
    ask(server.url, messages)
    again = ask(server.url, messages)
    assert again.report["miss"] == "block" and again.prompt - again.cached <= 16


def test_what_was_evicted_is_said_to_be(server):
    messages = talk("what is the weather like today in the north " * 20)
    ask(server.url, messages)
    for number in range(12):
        ask(server.url, talk(f"{number} people walked on the moon " * 60))
    again = ask(server.url, messages)
    assert again.report["miss"].split(",")[0] == "evicted" and int(again.report["lost"]) > 0


def test_a_stream_that_begins_with_silence_says_it_too(octavo, tmp_path):
    """A keep-alive comment sends the headers long before the first token."""
    model = make_long_context(tmp_path / "model", "llama", context=8192)
    with running_server.running(octavo, model, "--sse-keepalive", "0.02", "--max-num-batched-tokens", "8") as slow:
        turn = ask(slow.url, talk("the river runs through the city " * 700))
        assert turn.ttft > 0.1 and turn.header == f"hit=0/{turn.prompt}; miss=new; at=0"


def test_prompt_logprobs_need_every_row(server):
    messages = talk("in the south it is sunny " * 20)
    ask(server.url, messages)
    body = {"messages": messages, "max_tokens": 2, "prompt_logprobs": 0}
    request = urllib.request.Request(server.url + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        assert "miss=logprobs" in answer.headers["x-octavo-cache"]
