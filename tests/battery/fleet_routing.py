#!/usr/bin/env python3
"""Conversations on several replicas whose caches hold all of them only together: round robin, the router smg, and Dynamo's selection.

    tests/battery/fleet_routing.py [--servers 4] [--conversations 24] [--turns 5] [--rounds 1]

For each policy new replicas are started and the same conversations run: every turn of all conversations in random order, several at a
time. Prints one JSON line per policy with the share of prompt tokens that were cached, the time to the first token and the throughput.
The answers must be equal byte for byte under all policies. Policies whose program cannot be installed are left out."""

import argparse
import contextlib
import http.client
import itertools
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

REPO = Path(__file__).parents[2]
for folder in ("tests/support_py", "tools"):
    sys.path.insert(0, str(REPO / folder))

import dynamo_select  # noqa: E402
import smg_router  # noqa: E402
import smollm2_path  # noqa: E402
from fleet import Fleet  # noqa: E402
from server_kit import percentile  # noqa: E402

WORDS = "stone river lamp paper winter bridge copper garden engine silver letter market harbor signal mirror basket".split()


@dataclass
class Turn:
    text: str
    first_token: float
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


@dataclass
class Conversation:
    messages: list[dict]
    turns: list[Turn] = field(default_factory=list)


def new_conversations(count: int) -> list[Conversation]:
    rng = random.Random(5)
    return [Conversation([{"role": "system", "content": f"Case {number}. " + " ".join(rng.choice(WORDS) for _ in range(500))}])
            for number in range(count)]


@dataclass
class Route:
    """Where a request goes, and what its router is told when the first token has arrived."""
    url: str
    on_first_token: Callable[[], None] = lambda: None


def ask(route: Route, messages: list[dict]) -> Turn:
    body = {"model": "model", "messages": messages, "max_tokens": 24, "temperature": 0, "ignore_eos": True, "stream": True,
            "stream_options": {"include_usage": True}}
    connection = http.client.HTTPConnection(route.url.removeprefix("http://"), timeout=300)
    began, first, text, usage = time.monotonic(), None, "", {}
    with contextlib.closing(connection):
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, f"{answer.status}: {answer.read()[:300]!r}"
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            usage = chunk.get("usage") or usage
            if chunk["choices"] and (content := chunk["choices"][0]["delta"].get("content")):
                if first is None:
                    first = time.monotonic() - began
                    route.on_first_token()
                text += content
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    return Turn(text, first or 0.0, usage["prompt_tokens"], cached, usage["completion_tokens"])


class RoundRobin:
    def __init__(self, urls: list[str]):
        self.next, self.lock = itertools.cycle(urls), threading.Lock()

    @contextlib.contextmanager
    def route(self, messages: list[dict]):
        with self.lock:
            url = next(self.next)
        yield Route(url)


class Selected:
    """Dynamo's choice for the rendered prompt."""

    def __init__(self, selection: dynamo_select.Selection):
        self.selection = selection

    @contextlib.contextmanager
    def route(self, messages: list[dict]):
        with self.selection.reserved(messages) as (url, reservation):
            yield Route(url, lambda: self.selection.prefill_complete(reservation))


class Fixed:
    """A router's URL."""

    def __init__(self, url: str):
        self.url = url

    @contextlib.contextmanager
    def route(self, messages: list[dict]):
        yield Route(self.url)


@contextlib.contextmanager
def policy(name: str, fleet: Fleet, logs: Path):
    if name == "round robin":
        yield RoundRobin(fleet.urls)
    elif name.startswith("smg"):
        with smg_router.running(fleet.urls, name.split()[1], logs / "smg.log") as url:
            yield Fixed(url)
    else:
        with dynamo_select.running(fleet.urls, logs / "select.log") as selection:
            yield Selected(selection)


def converse(chosen, options: argparse.Namespace) -> tuple[list[Conversation], float]:
    """Returns the conversations and the seconds that they took."""
    conversations, rng = new_conversations(options.conversations), random.Random(6)

    def one(conversation: Conversation) -> None:
        conversation.messages.append({"role": "user", "content": f"Question {len(conversation.turns)}: what is next?"})
        with chosen.route(conversation.messages) as route:
            turn = ask(route, conversation.messages)
        conversation.turns.append(turn)
        conversation.messages.append({"role": "assistant", "content": turn.text})

    began = time.monotonic()
    with ThreadPoolExecutor(options.together) as pool:
        for _ in range(options.turns):
            list(pool.map(one, rng.sample(conversations, len(conversations))))
    return conversations, time.monotonic() - began


def figures_of(name: str, conversations: list[Conversation], seconds: float) -> dict:
    turns = [turn for conversation in conversations for turn in conversation.turns]
    first = [turn.first_token for turn in turns]
    return {"policy": name, "cached_percent": round(100 * sum(t.cached_tokens for t in turns) / sum(t.prompt_tokens for t in turns), 1),
            "first_token_ms": {f"p{share}": round(1000 * percentile(first, share / 100)) for share in (50, 99)},
            "output_tok_s": round(sum(turn.output_tokens for turn in turns) / seconds, 1), "prompt_tokens": sum(t.prompt_tokens for t in turns)}


def policies() -> list[str]:
    names = ["round robin"]
    if smg_router.python():
        names += ["smg round_robin", "smg cache_aware"]
    if dynamo_select.python():
        names.append("dynamo select")
    return names


def run_policy(name: str, octavo: Path, model: Path, options: argparse.Namespace) -> list[Conversation]:
    """On new replicas. Prints the figures."""
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder)

        def flags(number: int) -> list:
            return ["--max-model-len", 2048, "--kv-memory", "200MiB", "--max-num-seqs", 8, *dynamo_select.event_flags(number, logs)]

        with Fleet(octavo, model, options.servers, logs, flags, lambda _: {"OCTAVO_THREADS": "1"}) as fleet, \
                policy(name, fleet, logs) as chosen:
            conversations, seconds = converse(chosen, options)
    print(json.dumps(figures_of(name, conversations, seconds)), flush=True)
    return conversations


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--conversations", type=int, default=24)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--together", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    octavo = Path(os.environ.get("OCTAVO_BUILD", REPO / "build" / "release")) / "src" / "cli" / "octavo"
    texts: dict[str, list] = {}
    for name in policies() * options.rounds:
        conversations = run_policy(name, octavo, smollm2_path.find(), options)
        texts[name] = [[turn.text for turn in conversation.turns] for conversation in conversations]
    different = [name for name in texts if texts[name] != texts["round robin"]]
    print(json.dumps({"test": "fleet_routing", "policies": len(texts), "with_other_answers": different}))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
