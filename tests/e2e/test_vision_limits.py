"""While a large image is encoded, other requests go on and the server is alive: the encoding runs in pieces between their steps."""

import concurrent.futures
import json
import time
import urllib.request

import pytest
from running_server import running
from vision_requests import image_url, metric, noise, post, text

TOKENS = 4096  # of the image, 32 x 32 pixels each
LONGEST_GAP = 1.0


@pytest.fixture(scope="module")
def server(octavo, make_model):
    flags = ["--max-model-len", 8192, "--hf-overrides", '{"max_position_embeddings": 8192}', "--max-num-seqs", 4,
             "--image-max-tokens", TOKENS, "--served-model-name", "tiny"]
    with running(octavo, make_model("qwen3.5-wide-vision", dtype="bfloat16"), *flags) as server:
        yield server


def stream(url: str, stop) -> list[float]:
    """When each token of an answer arrived, until `stop` is set."""
    body = {"model": "tiny", "prompt": "Once upon a time", "max_tokens": 8000, "ignore_eos": True, "stream": True}
    request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    arrivals = []
    with urllib.request.urlopen(request, timeout=300) as response:
        for line in response:
            if line.startswith(b"data:"):
                arrivals.append(time.monotonic())
            if stop():
                break
    return arrivals


def test_a_neighbour_goes_on_while_a_large_image_is_encoded(server):
    side = int(TOKENS**0.5) * 32
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        asked = []
        neighbour = pool.submit(stream, server.url, lambda: bool(asked) and asked[0].done())
        time.sleep(1)
        begin = time.monotonic()
        body = {"model": "tiny", "max_tokens": 1, "messages": [{"role": "user", "content": [text("?"), image_url(noise(side, side, 1))]}]}
        asked.append(pool.submit(post, server.url, "/v1/chat/completions", body, 300))
        while not asked[0].done():
            with urllib.request.urlopen(server.url + "/livez", timeout=5) as alive:
                assert alive.status == 200
            time.sleep(0.2)
        took = time.monotonic() - begin
        usage = asked[0].result()["usage"]
        arrivals = [moment for moment in neighbour.result() if moment > begin]
    assert usage["prompt_tokens_details"]["image_tokens"] == TOKENS
    assert metric(server.url, "octavo:images_encoded_total") == 1
    gaps = [later - earlier for earlier, later in zip(arrivals, arrivals[1:])]
    print(f"request with the image: {took:.1f} s; neighbour: {len(arrivals)} tokens meanwhile, longest gap {max(gaps):.3f} s")
    assert len(arrivals) > 20
    assert max(gaps) < LONGEST_GAP
