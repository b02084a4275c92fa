"""The prefix cache with images: the same image at the same place is a hit and is not encoded, another one or another place is none, and the
keys are vLLM's."""

import json
from dataclasses import dataclass

import pytest
from kv_events_kit import Subscriber, block_hashes, source_of
from running_server import running
from vision_requests import image_url, metric, picture, post, text

BLOCK = 16
WORDS = "Tell me everything about it, and then say it again in other words, please. "
EVENTS = {"enable_kv_cache_events": True, "endpoint": "tcp://127.0.0.1:*", "replay_endpoint": "tcp://127.0.0.1:*", "topic": "kv"}
FLAGS = ["--max-model-len", 1024, "--block-size", BLOCK, "--max-num-seqs", 4, "--served-model-name", "tiny",
         "--kv-events-config", json.dumps(EVENTS)]


@pytest.fixture(scope="module", params=["qwen3.5-vision", "qwen3-vl", "gemma4-vision", "gemma3-vision", "mistral3-vision"])
def server(request, octavo, make_model):
    with running(octavo, make_model(request.param), *FLAGS) as server:
        yield server


@dataclass
class Asked:
    content: str
    cached: int
    tokens: int
    encoded: int  # images that this request encoded
    found: int    # images that it took from those kept


def ask(server, *parts, **more) -> Asked:
    names = ("octavo:images_encoded_total", "vllm:mm_cache_hits_total")
    before = [metric(server.url, name) for name in names]
    body = {"model": "tiny", "max_tokens": 8, "seed": 3, "temperature": 1, "messages": [{"role": "user", "content": list(parts)}]}
    answer = post(server.url, "/v1/chat/completions", body | more)
    encoded, found = (int(metric(server.url, name) - old) for name, old in zip(names, before))
    usage = answer["usage"]
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    return Asked(answer["choices"][0]["message"]["content"], cached, usage["prompt_tokens"], encoded, found)


def test_the_same_image_is_a_hit_and_is_not_encoded(server):
    parts = [image_url(picture(red=10)), text(WORDS * 4)]
    first, again = ask(server, *parts), ask(server, *parts)
    assert (first.cached, first.encoded) == (0, 1)
    assert again.cached > first.tokens // 2 and again.encoded == 0
    assert again.content == first.content


def test_another_image_is_no_hit(server):
    ask(server, image_url(picture(red=20)), text(WORDS * 4))
    other = ask(server, image_url(picture(red=21)), text(WORDS * 4))
    assert other.encoded == 1
    assert other.cached < other.tokens // 4  # at most what comes before the image


def test_another_place_is_no_hit_but_the_image_is_kept(server):
    ask(server, image_url(picture(red=30)), text(WORDS * 4))
    moved = ask(server, text("So. "), image_url(picture(red=30)), text(WORDS * 4))
    assert moved.cached < moved.tokens // 4
    assert (moved.encoded, moved.found) == (0, 1)


def test_a_kept_image_gives_the_same_answer_as_a_new_one(server):
    parts = [text("What? "), image_url(picture(red=40)), text(WORDS)]
    first, again = (ask(server, *parts, cache_salt=salt) for salt in ("a", "b"))
    assert (again.cached, again.encoded, again.found) == (0, 0, 1)
    assert again.content == first.content


def test_keys_are_vllms(server):
    """Each block with tokens of an image has the pair of the image's identifier and its offset in the block."""
    parts = [text("First "), image_url(picture(red=50)), text(" and second "), image_url(picture(64, 96, red=51)), text(WORDS * 3)]
    body = {"model": "tiny", "max_tokens": 1, "messages": [{"role": "user", "content": parts}], "cache_salt": "tenant"}
    rendered = post(server.url, "/v1/chat/completions/render", body)
    rendered = rendered[0] if isinstance(rendered, list) else rendered
    tokens, features = rendered["token_ids"], rendered["features"]
    images = list(zip(features["mm_hashes"]["image"], features["mm_placeholders"]["image"]))
    assert len(images) == 2
    keys = []
    for block in range(len(tokens) // BLOCK):
        begin = block * BLOCK
        pairs = [(name, place["offset"] - begin) for name, place in images
                 if place["offset"] < begin + BLOCK and place["offset"] + place["length"] > begin]
        keys.append(tuple(pairs + ([("cache_salt", "tenant")] if block == 0 else [])) or None)
    wanted = block_hashes(tokens[:-1], BLOCK, keys)
    with Subscriber(source_of(server.url)) as subscriber:
        ask(server, *parts, max_tokens=1, cache_salt="tenant")
        assert subscriber.wait_for(lambda mirror: any(set(wanted) <= blocks for blocks in mirror.blocks.values()))
