#!/usr/bin/env python3
"""Mixed load on one `octavo serve` for minutes or hours: memory, latencies over time, and the bytes of one request that is repeated.

    tests/battery/soak.py OCTAVO MODEL [--minutes 30] [--clients 8] [--seed 1] [--samples FILE]

Clients send chats (streamed, whole, with two answers), conversations that grow, structured output, tool calls, completions with
log probabilities, and close a tenth of their connections in the middle. Every interval appends a line to --samples, which
tools/soak_plot.py draws; the seed is the number of the piece, and lines of this and later pieces are replaced.

Prints one JSON line; exits with status 1 if a request failed, the repeated request had other bytes, memory exceeded the plan or grew
by more than 1%, or pages stayed in use. Growth is from the second quarter of the time to the last, by medians; it is judged from ten
minutes on, because caches fill before."""

import argparse
import http.client
import json
import random
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

for folder in ("support_py", "e2e"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))

import running_server  # noqa: E402
from server_kit import Server, percentile, without_names  # noqa: E402

WORDS = (
    "the river runs through a town where people count pages of old books and print one more letter every quiet morning".split()
)
MOST_GROWTH_PERCENT, MINUTES_TO_SETTLE = 1, 10
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "count": {"type": "integer", "maximum": 99, "minimum": 0}},
    "required": ["name", "count"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": SCHEMA}}
REPEATED = {
    "messages": [{"role": "user", "content": "Count the pages of the old book."}],
    "max_tokens": 60,
    "ignore_eos": True,
    "temperature": 1,
    "seed": 7,
    "logprobs": True,
    "top_logprobs": 2,
}


@dataclass
class Figures:
    """What the clients saw. Locked, because all clients write to it."""

    first: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    requests: int = 0
    cut: int = 0
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> tuple[list[float], list[float]]:
        with self.lock:
            taken = self.first, self.gaps
            self.first, self.gaps = [], []
            return taken


class Client:
    def __init__(self, server: Server, seed: int, figures: Figures, stopping: threading.Event):
        self.server, self.figures, self.stopping = server, figures, stopping
        self.rng = random.Random(seed)
        self.conversation: list[dict] = []

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                path, body = self.request()
                self.send(path, body, cut=self.rng.random() < 0.1)
            except Exception as error:  # a failed request is the finding
                with self.figures.lock:
                    self.figures.wrong.append(repr(error)[:500])
                self.stopping.wait(1)

    def words(self, most: int) -> str:
        return " ".join(self.rng.choice(WORDS) for _ in range(self.rng.randint(1, most)))

    def request(self) -> tuple[str, dict]:
        rng = self.rng
        body = {
            "max_tokens": rng.randint(4, 100),
            "temperature": rng.choice([0, 0.8, 1]),
            "seed": rng.randrange(1000),
            "stream": rng.random() < 0.7,
        }
        kind = rng.choice(["chat", "chat", "grow", "grow", "two", "schema", "tool", "completion"])
        if kind == "completion":
            return "/v1/completions", body | {"prompt": self.words(300), "logprobs": 3}
        body["messages"] = self.grown() if kind == "grow" else [{"role": "user", "content": self.words(200)}]
        if kind == "two":
            body["n"] = 2
        elif kind == "schema":
            body |= {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}}
        elif kind == "tool":
            body |= {"tools": [TOOL], "tool_choice": "required"}
        return "/v1/chat/completions", body

    def grown(self) -> list[dict]:
        """The conversation with one more turn; it begins again after eight."""
        if len(self.conversation) >= 15:
            self.conversation = []
        if self.conversation:
            self.conversation.append({"role": "assistant", "content": self.words(60)})
        self.conversation.append({"role": "user", "content": self.words(120)})
        return list(self.conversation)

    def send(self, path: str, body: dict, cut: bool) -> None:
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=600)
        began = last = time.monotonic()
        first, gaps, ended = 0.0, [], False
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise ValueError(f"{answer.status}: {answer.read(300)!r}")
            if not body["stream"]:
                ended = cut or bool(json.loads(answer.read())["choices"])
            for line in answer if body["stream"] else ():
                if line.startswith(b"data: {"):
                    if b'"error"' in line[:20]:
                        raise ValueError(line[:300])
                    now = time.monotonic()
                    if first:
                        gaps.append(now - last)
                    first, last = first or now - began, now
                ended = ended or line.startswith(b"data: [DONE]")
                if cut and first and self.rng.random() < 0.2:
                    break
        finally:
            connection.close()
        if not ended and not cut:
            raise ValueError("the answer ended early")
        with self.figures.lock:
            self.figures.requests += 1
            self.figures.cut += cut and not ended
            self.figures.gaps += gaps
            if first:
                self.figures.first.append(first)


@dataclass
class Sample:
    piece: int
    minute: float
    resident_mib: float
    first_token_p99_ms: float
    between_tokens_p99_ms: float
    requests: int


def keep_earlier_pieces(samples: Path, piece: int) -> None:
    samples.parent.mkdir(parents=True, exist_ok=True)
    lines = samples.read_text().splitlines() if samples.exists() else []
    samples.write_text("".join(line + "\n" for line in lines if json.loads(line)["piece"] < piece))


def watch(server: Server, figures: Figures, piece: int, seconds: float, samples: Path | None) -> list[Sample]:
    """Takes samples until the time ends, and repeats one request."""
    expected = repeated(server)
    interval = min(30.0, seconds / 20)
    began = time.monotonic()
    taken = []
    while (passed := time.monotonic() - began) < seconds:
        time.sleep(min(interval, seconds - passed))
        if repeated(server) != expected:
            figures.wrong.append("the repeated request has other bytes")
        first, gaps = figures.take()
        taken.append(
            Sample(
                piece,
                round((time.monotonic() - began) / 60, 3),
                round(server.resident_bytes() / 2**20, 1),
                round(1000 * percentile(first, 0.99), 1),
                round(1000 * percentile(gaps, 0.99), 1),
                figures.requests,
            )
        )
        if samples:
            with samples.open("a") as file:
                file.write(json.dumps(taken[-1].__dict__) + "\n")
    return taken


def repeated(server: Server) -> bytes:
    answer = server.ask("POST", "/v1/chat/completions", REPEATED, timeout=600)
    assert answer.status == 200, answer
    return without_names(answer.body)


def resident_in(taken: list[Sample], quarter: int) -> float:
    """Median of the resident memory in a quarter of the time, counted from 0."""
    part = taken[quarter * len(taken) // 4 : (quarter + 1) * len(taken) // 4] or taken
    return percentile([sample.resident_mib for sample in part], 0.5)


def run(octavo, model, minutes: float, clients: int, seed: int, samples: Path | None = None, flags: tuple = ()) -> dict:
    figures, stopping = Figures(), threading.Event()
    if samples:
        keep_earlier_pieces(samples, seed)
    with running_server.running(octavo, model, "--no-access-log", *flags) as started:
        server = Server.at(started.url)
        threads = [
            threading.Thread(target=Client(server, 1000 * seed + number, figures, stopping).run) for number in range(clients)
        ]
        for thread in threads:
            thread.start()
        try:
            taken = watch(server, figures, seed, 60 * minutes, samples)
        finally:
            stopping.set()
            for thread in threads:
                thread.join(600)
        server.wait_for_baseline(60)
        memory = server.ask("GET", "/v1/octavo/memory").json()
    plan = sum(memory["plan_bytes"][name] for name in ("weights", "pages", "step", "requests", "reserve")) / 2**20
    early, late = (resident_in(taken, quarter) for quarter in (1, 3))
    return {
        "minutes": minutes,
        "requests": figures.requests,
        "cut": figures.cut,
        "wrong": len(figures.wrong),
        "wrong_like": figures.wrong[:3],
        "resident_mib": {"early": early, "late": late, "most": max(sample.resident_mib for sample in taken), "plan": round(plan)},
        "growth_percent": round(100 * (late / early - 1), 2),
        "first_token_p99_ms": percentile([sample.first_token_p99_ms for sample in taken], 0.5),
        "between_tokens_p99_ms": percentile([sample.between_tokens_p99_ms for sample in taken], 0.5),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo")
    parser.add_argument("model")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=Path, metavar="FILE", help="append one line per interval")
    args = parser.parse_args()
    figures = run(args.octavo, args.model, args.minutes, args.clients, args.seed, args.samples)
    print(json.dumps({"test": "soak"} | figures))
    memory = figures["resident_mib"]
    grew = args.minutes >= MINUTES_TO_SETTLE and figures["growth_percent"] > MOST_GROWTH_PERCENT
    return 1 if figures["wrong"] or grew or memory["most"] > memory["plan"] else 0


if __name__ == "__main__":
    sys.exit(main())
