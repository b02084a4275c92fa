"""KV events: a subscriber with vLLM's types predicts every hit of the prefix cache, for each kind of cache."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import running_server
from kv_events_kit import Subscriber, block_hashes, complete, get_json, replay, source_of
from prefix_replay import make_long_context
from slow_tests import repeats

BLOCK = 16
# One family per kind of cache: all tokens, a window, latents, states.
MEMORY = {"llama": "1MiB", "gemma3": "4MiB", "deepseek_v2": "1MiB", "qwen3.5-text": "8MiB"}  # less than the prompts need
FAMILIES = {"llama": {"full_attention"}, "gemma3": {"full_attention", "sliding_window"}, "deepseek_v2": {"mla_attention"},
            "qwen3.5-text": {"full_attention", "mamba"}}


def events(**fields) -> tuple[str, str]:
    config = {"enable_kv_cache_events": True, "endpoint": "tcp://127.0.0.1:*", "replay_endpoint": "tcp://127.0.0.1:*", "topic": "kv"}
    return "--kv-events-config", json.dumps(config | fields)


@pytest.fixture(scope="module")
def model_of(tmp_path_factory):
    made = {}

    def of(family: str):
        if family not in made:
            made[family] = make_long_context(tmp_path_factory.mktemp("events") / "model", family, context=2048)
        return made[family]

    return of


def random_prompt(rng: random.Random) -> list[int]:
    """Few beginnings, so that some of it is often cached."""
    parts = [random.Random(rng.randrange(5) + 10 * number) for number in range(rng.randint(1, 3))]
    tokens = [part.randrange(100, 400) for part in parts for _ in range(70)]
    return tokens + [rng.randrange(100, 400) for _ in range(rng.randrange(40))]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_mirror_predicts_every_hit(octavo, model_of, family):
    flags = ("--block-size", BLOCK, "--max-model-len", 512, "--kv-memory", MEMORY[family], "--max-num-seqs", 4)
    rng = random.Random(7)
    with running_server.running(octavo, model_of(family), *flags, *events()) as server, Subscriber(source_of(server.url)) as subscriber:
        hits = 0
        for number in range(repeats(40, 1000)):
            prompt = random_prompt(rng)
            predicted = subscriber.hit_when_settled(prompt)
            cached, answer = complete(server.url, prompt, max_tokens=rng.choice([1, 3, 40]))
            assert cached == predicted, (number, len(prompt))
            hits += cached > 0
            whole = prompt + answer[:-1]
            settle(subscriber, whole)
        assert hits >= (2 if family == "qwen3.5-text" else 10)  # states are cached at few positions
        assert {group.kind for group in subscriber.mirror.groups.values()} == FAMILIES[family]
        assert subscriber.mirror.removed > 0 or family == "qwen3.5-text"
        assert subscriber.sequences == list(range(len(subscriber.sequences)))


def settle(subscriber: Subscriber, tokens: list[int]) -> None:
    """Waits for the last block of a sequence that has ended, whose events come last."""
    unit = min((group.block_size for group in subscriber.mirror.groups.values()), default=BLOCK)
    wanted = block_hashes(tokens, unit)[-1]
    end = time.monotonic() + 10
    while time.monotonic() < end:
        with subscriber.lock:
            if any(wanted in blocks for blocks in subscriber.mirror.blocks.values()):
                break
        time.sleep(0.002)
    time.sleep(0.02)


@pytest.fixture(scope="module")
def server(octavo, model_of):
    with running_server.running(octavo, model_of("llama"), "--block-size", BLOCK, *events(buffer_steps=8)) as running:
        yield running


def test_hashes_and_salts_are_vllms(server):
    tokens = list(range(100, 100 + 4 * BLOCK + 1))
    with Subscriber(source_of(server.url)) as subscriber:
        time.sleep(0.3)
        for salt in (None, "tenant é"):
            complete(server.url, tokens, **({"cache_salt": salt} if salt else {}))
            keys = [(("cache_salt", salt),), None, None, None] if salt else None
            assert subscriber.hit_when_settled(tokens, salt, at_least=4 * BLOCK) == 4 * BLOCK
            event = subscriber.mirror.stored[-1]
            assert event.block_hashes == block_hashes(tokens, BLOCK, keys)
            assert event.extra_keys == [(["cache_salt", salt],) if salt else None, None, None, None]
            assert event.token_ids == tokens[:-1] and event.parent_block_hash is None and event.medium == "GPU"
        with subscriber.lock:
            assert subscriber.mirror.hit(tokens, "another") == 0


def test_a_late_subscriber_asks_for_what_it_missed(octavo, model_of):
    tokens = [7] * 40
    with running_server.running(octavo, model_of("llama"), "--block-size", BLOCK, *events()) as late:
        complete(late.url, tokens)
        complete(late.url, [8] * 40)
        time.sleep(0.1)
        with Subscriber(source_of(late.url)) as subscriber:
            time.sleep(0.3)
            complete(late.url, [9] * 40)
            assert subscriber.hit_when_settled(tokens, at_least=32) == 32
            assert subscriber.sequences[0] == 0


def test_replay_keeps_the_newest_batches(server):
    for first in range(12):
        complete(server.url, [200 + first] * 20)
        time.sleep(0.02)
    kept = replay(source_of(server.url), 0)
    assert len(kept) == 8 and sorted(kept) == list(range(min(kept), max(kept) + 1))
    assert sorted(replay(source_of(server.url), max(kept) - 1)) == [max(kept) - 1, max(kept)]


def test_pages_on_disk_are_announced(octavo, model_of, tmp_path):
    tokens = list(range(100, 100 + 4 * BLOCK + 1))
    flags = ("--block-size", BLOCK, "--prefix-disk", tmp_path / "pages", *events())
    wanted = set(block_hashes(tokens, BLOCK))
    for start in ("first", "restarted"):
        with running_server.running(octavo, model_of("llama"), *flags) as server, Subscriber(source_of(server.url)) as subscriber:
            time.sleep(0.3)
            cached, _ = complete(server.url, tokens)
            assert cached == (0 if start == "first" else 4 * BLOCK), start
            end = time.monotonic() + 10
            while not wanted <= subscriber.mirror.blocks.get(("STORAGE", 0), set()):
                assert time.monotonic() < end, (start, subscriber.mirror.blocks)
                time.sleep(0.01)


def loads_zeromq(server) -> bool:
    return "libzmq" in Path(f"/proc/{server.process.pid}/maps").read_text()


def test_sources_are_empty_without_events(octavo, model_of):
    with running_server.running(octavo, model_of("llama")) as server:
        assert get_json(f"{server.url}/kv_event_sources") == {}
        assert sys.platform != "linux" or not loads_zeromq(server)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_zeromq_is_loaded_with_events(server):
    assert loads_zeromq(server)


@pytest.mark.skipif(sys.platform != "linux", reason="replaces a Linux library")
def test_without_zeromq_the_error_says_what_to_install(octavo, model_of, tmp_path):
    (tmp_path / "libzmq.so.5").write_text("not a library")
    done = subprocess.run([octavo, "serve", model_of("llama"), "--port", "0", *events()], capture_output=True, text=True, timeout=60,
                          env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 1 and "libzmq5" in done.stderr, done


@pytest.mark.parametrize(("flags", "message"), [
    (("--api-key", "a", "--api-key", "b"), "add --share-prefix-cache"),
    (("--no-enable-prefix-caching",), "remove --no-enable-prefix-caching"),
    (("--models-max", "2"), "one model only"),
])
def test_start_up_is_refused_where_predictions_would_be_wrong(octavo, model_of, flags, message):
    done = subprocess.run([octavo, "serve", model_of("llama"), "--port", "0", *events(), *flags], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode != 0 and message in done.stderr, done


def test_several_keys_may_share_one_cache(octavo, model_of):
    with running_server.running(octavo, model_of("llama"), "--api-key", "a", "--api-key", "b", "--share-prefix-cache", *events()) as server:
        assert any("KV events" in line for line in server.lines) is False  # loopback: no warning
