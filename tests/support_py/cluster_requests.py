"""Requests whose answers must not depend on the number of machines, and a way to compare them."""

from concurrent.futures import ThreadPoolExecutor

from cluster_kit import Cluster
from server_kit import without_names

TINY = ("--dtype", "bfloat16", "--max-model-len", 1024, "--block-size", 16)
LONG = [3 + 7 * i % 480 for i in range(300)]
SHORT = [5, 9, 200, 31]
REPEATED = [11, 12, 13, 14, 15, 16, 17, 18] * 12  # prompt lookup finds drafts in it
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}}, "required": ["a", "b"],
          "additionalProperties": False}


def requests() -> list[dict]:
    """Bodies of /v1/completions: greedy and seeded, long and short, with penalties, log probabilities, choices and grammars."""
    base = {"model": "model", "max_tokens": 20, "temperature": 0, "ignore_eos": True}
    return [base | more for more in (
        {"prompt": SHORT},
        {"prompt": LONG, "logprobs": 3, "prompt_logprobs": 2},
        {"prompt": LONG + [7], "temperature": 1, "seed": 1},
        {"prompt": SHORT, "temperature": 0.8, "top_p": 0.9, "seed": 2, "n": 3},
        {"prompt": LONG[:77], "temperature": 1, "seed": 3, "repetition_penalty": 1.2, "frequency_penalty": 0.5, "logprobs": 1},
        {"prompt": REPEATED, "max_tokens": 40},
        {"prompt": REPEATED, "temperature": 1, "top_k": 3, "seed": 4},
        {"prompt": SHORT, "structured_outputs": {"regex": "[a-z]{3,20}[0-9]{2}"}, "ignore_eos": False},
        {"prompt": LONG[:50], "structured_outputs": {"json": SCHEMA}, "temperature": 1, "seed": 5, "ignore_eos": False, "max_tokens": 60},
        {"prompt": [LONG[:40], LONG[:41], SHORT], "echo": True, "logprobs": 2},
    )]


def answers(cluster: Cluster, bodies: list[dict], together: int = 6, path: str = "/v1/completions") -> list[bytes]:
    def ask(body: dict) -> bytes:
        answer = cluster.ask("POST", path, body)
        assert answer.status == 200, (answer.body, cluster.logs())
        return without_names(answer.body)

    with ThreadPoolExecutor(together) as pool:
        return list(pool.map(ask, bodies))
