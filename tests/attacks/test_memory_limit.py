"""With little address space left, running out of memory is an error of one request: the process stays, streams go on, and later
requests are answered."""

import resource
from concurrent.futures import ThreadPoolExecutor

import hostile_inputs
import pytest
from attack_kit import AttackedServer, neighbour, post, real

HEADROOM = 1280 << 20  # what the plan allows requests, and some for threads. Tokenizing 8 MB without a limit took 2.7 GB.
EXPECTED = {200, 400, 413, 429, 503}


def limit_address_space(server: AttackedServer) -> None:
    """The soft limit only: helper processes set their own."""
    with open(f"/proc/{server.pid}/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_AS)
    resource.prlimit(server.pid, resource.RLIMIT_AS, (used + HEADROOM, hard))


@pytest.fixture(scope="module")
def confined():
    with real() as server:
        limit_address_space(server)
        yield server


def attacks() -> list[tuple[str, str | dict | bytes]]:
    digits = "7" * 8_000_000
    chain = "start: R0\n" + "\n".join(f"R{i}: R{i + 1} & /(.*[a-z]{{{i % 17}}}.{{{i % 13}}})*/" for i in range(10)) + "\nR10: /.*/"
    return [("/tokenize", {"prompt": digits}), ("/v1/completions", {"prompt": digits, "max_tokens": 1}),
            ("/v1/completions", '{"prompt": "hi", "max_tokens": 1, "metadata": {"x": [' + ",".join(["{}"] * 2_700_000) + "]}}"),
            ("/v1/completions", {"prompt": "hi", "max_tokens": 1, "structured_outputs": {"grammar": chain}}),
            *(("/v1/chat/completions", hostile_inputs.make("bodies", seed)) for seed in range(12))]


def test_out_of_memory_is_an_error_of_one_request(confined):
    with neighbour(confined) as stream, ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda attack: post(confined, *attack, timeout=40), attacks()))
        stream.wait_for_tokens(3)
    assert {reply.status for reply in replies} <= EXPECTED, replies
    assert confined.alive()
    assert post(confined, "/v1/completions", {"prompt": "Once", "max_tokens": 2}).status == 200
