#!/usr/bin/env python3
"""Sends ten times more requests than the server can answer, including slow readers and slow senders.

    tests/battery/overload.py [--seconds 60] [--connections 1000] [--url http://127.0.0.1:8000]

First measures the server's peak rate with as many streams as it can run, then sends ten times that rate over many keep-alive
connections. Every request is accounted for: it is refused (429, 503) or accepted, and an accepted request ends exactly once,
with all its tokens. Prints one JSON line; exits with status 1 if an accepted request was lost.

Clients run in separate processes; `client_lag_ms` is the delay of their event loops, which is included in every latency."""

import argparse
import asyncio
import json
import multiprocessing
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support_py"))
from server_kit import Server, percentile, request_bytes  # noqa: E402

TOKENS = 50


def body(number: int, stream: bool) -> dict:
    return {"prompt": f"request {number}", "stream": stream, "max_tokens": TOKENS, "ignore_eos": True, "temperature": 1,
            "seed": number % 1000, "return_token_ids": True}


async def read_answer(reader: asyncio.StreamReader, pause: float = 0) -> tuple[int, bytes, float]:
    """Returns the status, the body, and the time when the headers arrived."""
    head = await reader.readuntil(b"\r\n\r\n")
    came = time.monotonic()
    status = int(head[9:12])
    if b"chunked" not in head:
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        return status, await reader.readexactly(length), came
    parts = []
    while True:
        size = int(await reader.readuntil(b"\r\n"), 16)
        data = await reader.readexactly(size + 2)
        if size == 0:
            return status, b"".join(parts), came
        parts.append(data[:-2])
        if pause:
            await asyncio.sleep(pause)


def is_whole(data: bytes, stream: bool) -> bool:
    if not stream:
        return len(json.loads(data)["choices"][0]["token_ids"]) == TOKENS
    if not data.endswith(b"data: [DONE]\n\n"):
        return False
    events = [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: {")]
    return sum(len(event["choices"][0]["token_ids"]) for event in events if event.get("choices")) == TOKENS


class Ledger:
    def __init__(self):
        self.sent = self.done = self.refused = self.unconnected = 0
        self.lost: list[str] = []
        self.refusal_ms: list[float] = []
        self.first_ms: list[float] = []
        self.lag_ms: list[float] = []

    def enter(self, answer: tuple[int, bytes, float], began: float, stream: bool) -> None:
        status, data, came = answer
        if status in (429, 503):
            self.refused += 1
            self.refusal_ms.append((came - began) * 1e3)
        elif status == 200 and is_whole(data, stream):
            self.done += 1
            self.first_ms.append((came - began) * 1e3)
        else:
            self.lost.append(f"{status}: {data[-200:]!r}")

    async def watch_the_clock(self) -> None:
        while True:
            due = time.monotonic() + 0.01
            await asyncio.sleep(0.01)
            self.lag_ms.append((time.monotonic() - due) * 1e3)


class Client:
    def __init__(self, host: str, port: int, ledger: Ledger, until: float):
        self.address, self.ledger, self.until = (host, port), ledger, until

    async def connect(self):
        while True:
            try:
                return await asyncio.open_connection(*self.address)
            except OSError:
                self.ledger.unconnected += 1
                await asyncio.sleep(0.2)

    async def steady(self, number: int, period: float) -> None:
        """Sends a request every `period` seconds over one connection; 0 sends them back to back."""
        draw = random.Random(number)
        await asyncio.sleep(draw.random() * period)
        reader, writer = await self.connect()
        while time.monotonic() < self.until:
            began = time.monotonic()
            stream = draw.random() < 0.7
            writer.write(request_bytes("POST", "/v1/completions", body(draw.randrange(10**6), stream)))
            self.ledger.sent += 1
            try:
                self.ledger.enter(await asyncio.wait_for(read_answer(reader), 120), began, stream)
            except Exception as error:  # a missing response is the finding
                self.ledger.lost.append(repr(error))
                reader, writer = await self.connect()
            await asyncio.sleep(max(0.0, began + period * (0.5 + draw.random()) - time.monotonic()))
        writer.close()

    async def slow(self, number: int, sends_slowly: bool) -> None:
        """A client that sends or reads slowly."""
        draw = random.Random(number)
        while time.monotonic() < self.until:
            reader, writer = await self.connect()
            data = request_bytes("POST", "/v1/completions", body(number, True), {"Connection": "close"})
            self.ledger.sent += 1
            try:
                for at in range(0, len(data), 8 if sends_slowly else len(data)):
                    writer.write(data[at:at + (8 if sends_slowly else len(data))])
                    await asyncio.sleep(0.2 if sends_slowly else 0)
                began = time.monotonic()
                answer = await asyncio.wait_for(read_answer(reader, 0 if sends_slowly else 0.2), 180)
                self.ledger.enter(answer, began, True)
            except Exception as error:
                self.ledger.lost.append(f"slow: {error!r}")
            writer.close()
            await asyncio.sleep(draw.random())


def run_clients(results, make_tasks, host: str, port: int, seconds: float) -> None:
    async def all_of_them() -> Ledger:
        ledger = Ledger()
        client = Client(host, port, ledger, time.monotonic() + seconds)
        clock = asyncio.create_task(ledger.watch_the_clock())
        await asyncio.gather(*(getattr(client, name)(*arguments) for name, arguments in make_tasks))
        clock.cancel()
        return ledger

    results.put(asyncio.run(all_of_them()).__dict__)


def offer(server: Server, groups: list[list[tuple]], seconds: float) -> tuple[list[dict], dict]:
    """Runs every group of clients in its own process. Returns the ledgers and the server's figures for the middle part."""
    results = multiprocessing.Queue()
    processes = [multiprocessing.Process(target=run_clients, args=(results, group, server.host, server.port, seconds))
                 for group in groups]
    for process in processes:
        process.start()
    time.sleep(min(5, seconds * 0.2))
    marks, resident = [], 0
    end = time.monotonic() + seconds * 0.6
    while True:
        marks.append((time.monotonic(), server.metric("vllm:generation_tokens_total")))
        resident = max(resident, server.resident_bytes())
        if time.monotonic() >= end:
            break
        time.sleep(1)
    (t0, tokens0), (t1, tokens1) = marks[0], marks[-1]
    ledgers = [results.get(timeout=seconds + 300) for _ in processes]
    for process in processes:
        process.join()
    return ledgers, {"tokens_per_s": (tokens1 - tokens0) / (t1 - t0), "resident_bytes": resident}


def run(server: Server, seconds: float, connections: int, slow: int, seats: int, peak_seconds: float = 10) -> dict:
    before = server.resident_bytes()
    _, peak = offer(server, [[("steady", (i, 0)) for i in range(2 * seats)]], peak_seconds)
    rate = 10 * peak["tokens_per_s"] / TOKENS
    halves = [[("steady", (i, connections / rate)) for i in range(half, connections, 2)] for half in (0, 1)]
    slow_ones = [("slow", (i, i % 2 == 0)) for i in range(2 * slow)]
    ledgers, loaded = offer(server, [*halves, slow_ones], seconds)
    server.wait_for_baseline(60)

    def total(name: str) -> int:
        return sum(ledger[name] for ledger in ledgers)

    fast = ledgers if slow == 0 else sorted(ledgers, key=lambda ledger: -ledger["sent"])[:2]
    refusals = [ms for ledger in fast for ms in ledger["refusal_ms"]]
    lag = [ms for ledger in fast for ms in ledger["lag_ms"]]
    lost = [text for ledger in ledgers for text in ledger["lost"]]
    assert total("sent") == total("done") + total("refused") + len(lost), "a request is in no account"
    return {"connections": connections, "slow_readers": slow, "slow_senders": slow, "offered_per_s": round(rate),
            "sent": total("sent"), "done": total("done"), "refused": total("refused"), "lost": len(lost), "lost_like": lost[:3],
            "refusal_ms": {"p50": round(percentile(refusals, 0.5), 2), "p99": round(percentile(refusals, 0.99), 2)},
            "client_lag_ms": {"p50": round(percentile(lag, 0.5), 2), "p99": round(percentile(lag, 0.99), 2)},
            "tokens_per_s": {"alone": round(peak["tokens_per_s"]), "overloaded": round(loaded["tokens_per_s"]),
                             "kept": round(loaded["tokens_per_s"] / peak["tokens_per_s"], 3)},
            "resident_mb": {"before": before >> 20, "most": loaded["resident_bytes"] >> 20, "after": server.resident_bytes() >> 20},
            "open_after": server.ask("GET", "/load").json()["server_load"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--slow", type=int, default=200, help="number of slow readers, and of slow senders")
    parser.add_argument("--seats", type=int, default=16, help="concurrent sequences of the server (--max-num-seqs)")
    parser.add_argument("--step-ms", type=int, default=20, help="step time of the fake server")
    parser.add_argument("--url", help="test this running server instead of starting one")
    flags = parser.parse_args()
    started = Server.at(flags.url) if flags.url else Server.start(
        step_ms=flags.step_ms, max_num_seqs=flags.seats, max_num_batched_tokens=256, pages=2048,
        max_open_requests=2 * flags.seats)
    with started as server:
        figures = run(server, flags.seconds, flags.connections, flags.slow, flags.seats)
    print(json.dumps({"test": "overload"} | figures))
    sys.exit(1 if figures["lost"] else 0)


if __name__ == "__main__":
    main()
