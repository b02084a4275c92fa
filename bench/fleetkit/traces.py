"""Traces of requests in Mooncake's format: one JSON object per request, whose hash_ids name blocks of BLOCK prompt tokens. Equal ids at the
beginning of two prompts are a shared prefix. Arrivals are random (Poisson), and a seed gives the same trace every time."""

import itertools
import json
import random
from dataclasses import dataclass
from pathlib import Path

BLOCK = 64


@dataclass(frozen=True)
class Chats:
    """Conversations: each begins with one of a few system prompts, and every turn repeats everything before it. The answers in later
    prompts are the trace's own, not those of the replica, so the blocks of generated tokens are never found again."""

    turns: int = 4
    system_prompts: int = 32  # chosen with probability 1/rank
    system_blocks: int = 8
    user_blocks: int = 4  # per turn, on average: from 1 to twice as many, less one
    answer_tokens: int = 128
    pause: float = 5.0  # seconds between an answer and the next turn, on average

    name = "chats"

    def requests(self, per_second: float, seconds: float, seed: int) -> list[dict]:
        rng, fresh = random.Random(seed), itertools.count()
        systems = [[next(fresh) for _ in range(self.system_blocks)] for _ in range(self.system_prompts)]
        records = []
        for session, start in enumerate(arrivals(rng, per_second / self.turns, seconds)):
            history = list(popular(rng, systems))
            for turn in range(self.turns):
                history += [next(fresh) for _ in range(rng.randrange(1, 2 * self.user_blocks))]
                when = {"timestamp": round(1000 * start)} if turn == 0 else {"delay": round(1000 * rng.expovariate(1 / self.pause))}
                records.append({"session_id": f"s{session}"} | when | request(history, self.answer_tokens))
                history += [next(fresh) for _ in range(-(-self.answer_tokens // BLOCK))]
        return records


@dataclass(frozen=True)
class Documents:
    """Single requests as in Mooncake's public traces, with shorter prompts: a question after one of many documents."""

    documents: int = 2000  # chosen with probability 1/rank
    document_blocks: int = 24  # on average: from 1 to twice as many, less one
    question_blocks: int = 2
    answer_tokens: int = 128

    name = "documents"

    def requests(self, per_second: float, seconds: float, seed: int) -> list[dict]:
        rng, fresh = random.Random(seed), itertools.count()
        texts = [[next(fresh) for _ in range(rng.randrange(1, 2 * self.document_blocks))] for _ in range(self.documents)]
        return [{"timestamp": round(1000 * start)}
                | request(popular(rng, texts) + [next(fresh) for _ in range(self.question_blocks)], self.answer_tokens)
                for start in arrivals(rng, per_second, seconds)]


KINDS = {kind.name: kind for kind in (Chats, Documents)}


def arrivals(rng: random.Random, per_second: float, seconds: float) -> list[float]:
    """At least one."""
    found, now = [0.0], 0.0
    while (now := now + rng.expovariate(per_second)) < seconds:
        found.append(now)
    return found


def popular(rng: random.Random, items: list) -> list:
    """One of them; the n-th is chosen n times more rarely than the first."""
    return rng.choices(items, cum_weights=_weights(len(items)))[0]


_known: dict[int, list[float]] = {}


def _weights(count: int) -> list[float]:
    if count not in _known:
        _known[count] = list(itertools.accumulate(1 / rank for rank in range(1, count + 1)))
    return _known[count]


def request(hash_ids: list[int], output_tokens: int) -> dict:
    return {"input_length": BLOCK * len(hash_ids), "output_length": output_tokens, "hash_ids": list(hash_ids)}


def tokens_of(record: dict, vocabulary: int) -> list[int]:
    """The prompt as token ids: each block's depend on its id only."""
    return [token for block in record["hash_ids"] for token in random.Random(block).choices(range(vocabulary), k=BLOCK)]


def most_reusable(records: list[dict]) -> float:
    """The share of prompt tokens that one cache without limit would have when they arrive in this order."""
    seen, reused, total = set(), 0, 0
    for record in records:
        path, matching = (), True
        for block in record["hash_ids"]:
            path = hash((path, block))
            matching = matching and path in seen
            reused += matching
            seen.add(path)
        total += len(record["hash_ids"])
    return reused / total


def write(records: list[dict], path: Path) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path
