"""Hostile images (bad_images.py) end with a message, quickly and in little memory, and never with a crash."""

import json
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from bad_images import BAD, HARMLESS
from bad_image_urls import NEVER_ALLOWED, REFUSED
from running_server import running

SECONDS = 1
MEBIBYTES = 300


def probe(build_dir, image) -> tuple[dict, float, float]:
    """The answer of a process of its own, its seconds and its peak memory in MiB."""
    start = time.monotonic()
    orders = "".join(json.dumps(order) + "\n" for order in ({"image": str(image)}, {"peak": True}))
    ended = subprocess.run([build_dir / "tests" / "image_probe"], input=orders, stdout=subprocess.PIPE, text=True)
    seconds = time.monotonic() - start
    assert ended.returncode == 0, f"ended with {ended.returncode} after {ended.stdout!r}"
    answer, peak = map(json.loads, ended.stdout.splitlines())
    return answer, seconds, peak["bytes"] / 2**20


def slowness(build_dir) -> float:
    """What a sanitizer may cost."""
    return 10 if "asan" in build_dir.name else 1


@pytest.mark.parametrize("name", BAD)
def test_refused(name, build_dir, tmp_path):
    (tmp_path / "image").write_bytes(BAD[name])
    answer, seconds, mebibytes = probe(build_dir, tmp_path / "image")
    assert answer.get("status") == 400 and answer["error"], answer
    assert seconds < SECONDS * slowness(build_dir)
    assert mebibytes < MEBIBYTES * slowness(build_dir)


@pytest.mark.parametrize("name", HARMLESS)
def test_decoded(name, build_dir, tmp_path):
    (tmp_path / "image").write_bytes(HARMLESS[name])
    answer, _, _ = probe(build_dir, tmp_path / "image")
    assert answer == {"width": 4, "height": 2}


def test_there_are_many():
    assert len(BAD) >= 60


# URLs of images. None of these may be fetched, so the tests need no network; rust/src/media/tests.rs also has redirects, names that
# change their address, and answers that are too large.


@pytest.fixture(scope="module")
def fetching_server(octavo, make_model):
    """A server that fetches images from two hosts; one of them is this machine."""
    flags = ["--max-model-len", 512, "--allowed-media-domains", "localhost,images.example"]
    with running(octavo, make_model("qwen3.5-vision"), *flags) as server:
        yield server


def answer_to(url: str, server) -> tuple[int, dict]:
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    body = {"messages": [{"role": "user", "content": parts}], "max_tokens": 1}
    request = urllib.request.Request(f"{server.url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.parametrize("url", REFUSED)
def test_a_url_is_refused_by_name(url, fetching_server):
    start = time.monotonic()
    status, answer = answer_to(url, fetching_server)
    assert status == 400, answer
    assert answer["error"]["param"] == "messages[0].content[1].image_url.url"
    assert len(answer["error"]["message"]) < 400 and "secret" not in answer["error"]["message"]
    assert time.monotonic() - start < 5


def test_a_server_without_allowed_hosts_fetches_nothing(octavo, make_model):
    with running(octavo, make_model("qwen3.5-vision"), "--max-model-len", 512) as server:
        status, answer = answer_to("https://localhost/a.png", server)
    assert status == 400 and "--allowed-media-domains" in answer["error"]["message"]


@pytest.mark.parametrize("host", NEVER_ALLOWED)
def test_a_host_that_cannot_be_allowed_ends_the_start(host, octavo, tmp_path):
    command = [octavo, "serve", tmp_path / "no-model", "--port", "0", "--allowed-media-domains", host]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0 and "--allowed-media-domains" in ended.stderr + ended.stdout


def test_there_are_many_urls():
    assert len(REFUSED) >= 40
