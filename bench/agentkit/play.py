"""Plays a trace against a running server: one streamed request per turn, timed."""

import http.client
import json
import time
from dataclasses import asdict, dataclass

from .servers import Failed, Server
from .session import Trace, Turn


@dataclass
class Played:
    """One turn's figures. The times are seconds from sending the request."""

    server: str
    turn: int
    agent: str
    event: str
    prompt_tokens: int
    cached_tokens: int
    first_token: float
    seconds: float
    output_tokens: int

    @property
    def computed(self) -> int:
        return self.prompt_tokens - self.cached_tokens

    def line(self) -> str:
        figures = asdict(self) | {"computed_tokens": self.computed}
        return json.dumps({name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()})


@dataclass
class Session:
    """All turns against one server, and the restart between them."""

    server: str
    turns: list[Played]
    start: float = 0
    stop: float = 0
    restart: float = 0

    def line(self) -> str:
        times = {"start": self.start, "stop": self.stop, "restart": self.restart}
        return json.dumps({"server": self.server} | {name: round(value, 3) for name, value in times.items()})


def play(server: Server, trace: Trace) -> Session:
    """Starts the server, plays the turns, restarts it before the turns that the trace has for after a restart, and stops it."""
    session = Session(server.name, [])
    requests = trace.requests()
    try:
        session.start = server.start()
        for turn, messages in requests:
            if turn.event == "restart" and not session.restart:
                session.stop = server.stop()
                session.restart = server.start(again=True)
            session.turns.append(ask(server, turn, messages))
            print("  " + describe(session.turns[-1]), flush=True)
    finally:
        server.kill()
    return session


def describe(played: Played) -> str:
    return (
        f"{played.server:10} turn {played.turn:3} {played.agent:9} {played.event:8} {played.computed:6} of "
        f"{played.prompt_tokens:6} tokens computed, first token {played.first_token:7.2f} s, all {played.seconds:7.2f} s"
    )


def ask(server: Server, turn: Turn, messages: list[dict]) -> Played:
    """The first token is the first event with a choice: both servers send one only when a token has been computed."""
    body = {
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": turn.max_tokens,
        "ignore_eos": True,
        "temperature": 0.8,
        "top_p": 0.95,
        "seed": turn.number,
    }
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=3600)
    began = time.perf_counter()
    first, last = None, {}
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise Failed(f"{server.name}: turn {turn.number}: {answer.status}: {answer.read()[:500].decode(errors='replace')}")
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            if "error" in chunk:
                raise Failed(f"{server.name}: turn {turn.number}: {chunk['error']}")
            if chunk.get("choices") and first is None:
                first = time.perf_counter() - began
            last |= {name: chunk[name] for name in ("usage", "timings") if chunk.get(name)}
    except OSError as error:
        raise Failed(f"{server.name}: turn {turn.number}: {error}") from error
    finally:
        connection.close()
    if first is None or "usage" not in last:
        raise Failed(f"{server.name}: turn {turn.number}: the answer ended without a token or without its usage")
    usage = last["usage"]
    return Played(
        server.name,
        turn.number,
        turn.agent,
        turn.event,
        usage["prompt_tokens"],
        cached_tokens(usage, last.get("timings")),
        first,
        time.perf_counter() - began,
        usage["completion_tokens"],
    )


def cached_tokens(usage: dict, timings: dict | None) -> int:
    """Both servers report it in `usage`; older versions of llama.cpp's only what they computed, in `timings`."""
    details = usage.get("prompt_tokens_details") or {}
    if "cached_tokens" in details:
        return details["cached_tokens"]
    return usage["prompt_tokens"] - timings["prompt_n"] if timings else 0
