"""A new replica fetches the prefix pages of another one: with the secret, equal fingerprints, and only pages that may be shared."""

import json
import subprocess
import time
import urllib.error
import urllib.request

import pytest
import running_server
from kv_events_kit import post_json
from prefix_replay import make_long_context

TOKENS = [100 + 7 * i % 300 for i in range(400)]
BLOCK = 16


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_long_context(tmp_path_factory.mktemp("peer") / "model", "llama", context=2048)


@pytest.fixture(scope="module")
def secret(tmp_path_factory):
    path = tmp_path_factory.mktemp("secret") / "secret"
    path.write_text("a secret of enough characters\n")
    return path


def start(octavo, model, folder, *flags, block: int = BLOCK):
    return running_server.running(octavo, model, "--block-size", block, "--max-model-len", 1024, "--kv-memory", "4MiB", "--prefix-disk",
                                  folder, *flags)


def internal_of(server) -> str:
    return next(line.split()[-1] for line in server.lines if line.split()[:1] == ["internal"])


def complete(server, tokens=TOKENS, key: str | None = None, **fields) -> tuple[int, str]:
    """Returns the cached tokens and the answer."""
    body = {"prompt": tokens, "max_tokens": 8, "temperature": 0, "ignore_eos": True} | fields
    request = urllib.request.Request(server.url + "/v1/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {}))
    with urllib.request.urlopen(request, timeout=60) as response:
        answer = json.load(response)
    details = answer["usage"].get("prompt_tokens_details") or {}
    return details.get("cached_tokens", 0), answer["choices"][0]["text"]


def wait_for_line(server, text: str) -> str:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for line in server.lines:
            if text in line:
                return line
        time.sleep(0.02)
    raise AssertionError(f"no line with {text!r}: {''.join(server.lines)}")


def metric(server, name: str) -> float:
    text = urllib.request.urlopen(server.url + "/metrics", timeout=30).read().decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def test_a_new_replica_starts_with_the_pages_of_another(octavo, model, secret, tmp_path):
    shared = ("--prefix-peer-secret-file", secret)
    with start(octavo, model, tmp_path / "a", *shared, "--internal-port", 0) as first:
        _, text = complete(first)
        salted = complete(first, cache_salt="x")[1]
        assert salted == text
        time.sleep(0.5)  # until the pages are on disk
        with start(octavo, model, tmp_path / "b", *shared, "--prefix-peer", internal_of(first)) as second:
            wait_for_line(second, "fetched")
            # The first hit is computed, to compare the pages; later ones are not.
            assert complete(second) == (0, text)
            time.sleep(0.5)
            complete(second, [5, 6, 7])  # metrics are those of the last step
            assert metric(second, "octavo:prefix_disk_received_pages_total") >= len(TOKENS) // BLOCK
            assert metric(second, "octavo:prefix_disk_proven_pages_total") > 0
            assert metric(second, "octavo:prefix_disk_refuted_pages_total") == 0
        with start(octavo, model, tmp_path / "c", *shared, "--prefix-peer", internal_of(first)) as third:
            wait_for_line(third, "fetched")
            complete(third, TOKENS[:200])  # the first hit
            cached, again = complete(third)
            assert cached > 200 and again == text


def test_another_secret_and_another_block_size_are_refused(octavo, model, secret, tmp_path):
    other = tmp_path / "other"
    other.write_text("another secret of enough characters")
    with start(octavo, model, tmp_path / "a", "--prefix-peer-secret-file", secret, "--internal-port", 0) as first:
        complete(first)
        with start(octavo, model, tmp_path / "b", "--prefix-peer-secret-file", other, "--prefix-peer", internal_of(first)) as second:
            assert "403" in wait_for_line(second, "not fetched")
        with start(octavo, model, tmp_path / "c", "--prefix-peer-secret-file", secret, "--prefix-peer", internal_of(first),
                   block=32) as third:
            assert "409" in wait_for_line(third, "not fetched")
        for path in ("list", "read"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                post_json(f"{internal_of(first)}/octavo/prefix_pages/{path}", {"fingerprint": "x"})
            assert refused.value.code == 403
            with pytest.raises(urllib.error.HTTPError) as absent:
                post_json(f"{first.url}/octavo/prefix_pages/{path}", {"fingerprint": "x"})
            assert absent.value.code == 404


def test_pages_of_separate_api_keys_are_not_shared(octavo, model, secret, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("one\ntwo\n")
    with start(octavo, model, tmp_path / "a", "--prefix-peer-secret-file", secret, "--internal-port", 0, "--api-key-file", keys) as first:
        complete(first, key="one")
        time.sleep(0.5)
        with start(octavo, model, tmp_path / "b", "--prefix-peer-secret-file", secret, "--prefix-peer", internal_of(first)) as second:
            assert "fetched 0 pages" in wait_for_line(second, "fetched")


def test_flags_that_are_missing_are_named(octavo, model, secret, tmp_path):
    for flags, needed in ((["--prefix-peer", "http://127.0.0.1:1"], "--prefix-peer-secret-file"),
                          (["--prefix-peer-secret-file", secret], "--prefix-disk"),
                          (["--prefix-peer-secret-file", secret, "--prefix-disk", tmp_path / "d"], "--internal-port")):
        result = subprocess.run([octavo, "serve", model, "--port", "0", *map(str, flags)], capture_output=True, text=True, timeout=60)
        assert result.returncode == 1 and needed in result.stderr, result.stderr
