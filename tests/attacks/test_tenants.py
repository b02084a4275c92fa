"""What one API key can learn about the prompts of another: with several keys, nothing is shared through the prefix cache, in
memory or on disk, unless --share-prefix-cache is given."""

from pathlib import Path

from attack_kit import fake, real, request_bytes

TEXT = "The account number of the customer is 4711 and the password is a secret that no other key may learn. " * 4


def complete(server, key: str, prompt: str = TEXT):
    """Cached tokens and the header that explains them."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    answer = server.ask("POST", "/v1/completions", {"prompt": prompt, "max_tokens": 1}, headers=headers)
    assert answer.status == 200, answer
    return answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"], answer.headers["x-octavo-cache"]


def message(server, key: str) -> int:
    """Cached tokens of the same text through Anthropic's API."""
    body = {"model": "fake", "max_tokens": 1, "messages": [{"role": "user", "content": TEXT}]}
    with server.wire() as wire:
        answer = wire.send(request_bytes("POST", "/v1/messages", body, {"x-api-key": key})).answer("POST")
    assert answer.status == 200, answer
    return answer.json()["usage"]["cache_read_input_tokens"]


def test_two_keys_share_no_cached_tokens():
    with fake(api_key=["one", "two"]) as server:
        assert complete(server, "one")[0] == 0
        again, _ = complete(server, "one")
        assert again > 100
        cached, header = complete(server, "two")
        assert cached == 0
        assert header.startswith("hit=0/") and "miss=new" in header
        assert complete(server, "two")[0] == again
        assert message(server, "one") == 0
        assert message(server, "one") > 100
        assert message(server, "two") == 0


def test_share_prefix_cache_shares_between_keys():
    with fake(api_key=["one", "two"], share_prefix_cache=True) as server:
        assert complete(server, "one")[0] == 0
        assert complete(server, "two")[0] > 100
        assert message(server, "one") == 0
        assert message(server, "two") > 100


def test_one_key_or_none_shares_as_before():
    with fake(api_key=["one", "one"]) as server:
        assert complete(server, "one")[0] == 0
        assert complete(server, "one")[0] > 100
    with fake() as server:  # keys that a server without keys ignores
        assert complete(server, "one")[0] == 0
        assert complete(server, "two")[0] > 100


def test_two_keys_share_nothing_on_disk(tmp_path: Path):
    folder = tmp_path / "pages"
    keys = ("a-key-of-the-first-tenant", "a-key-of-the-second-tenant")
    flags = ("--api-key", keys[0], "--api-key", keys[1], "--prefix-disk", folder, "--prefix-disk-size", "1GiB")
    with real(*flags, key=keys[0]) as server:
        assert complete(server, keys[0])[0] == 0
    with real(*flags, key=keys[0]) as server:
        cached, header = complete(server, keys[1])
        assert cached == 0 and "disk=" not in header
        cached, header = complete(server, keys[0])
        assert cached > 0 and "disk=" in header
    for file in folder.iterdir():
        assert not any(key.encode() in file.read_bytes() for key in keys), file


def test_no_text_of_another_request_is_in_the_header():
    with fake() as server:  # without keys, all callers share one history
        complete(server, "")
        _, header = complete(server, "", TEXT[:60] + "other words, other words, other words, other words")
    assert "miss=differs" in header
    assert not any(word in header for word in TEXT.split() if len(word) > 6)
