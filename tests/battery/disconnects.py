#!/usr/bin/env python3
"""Closes connections at random byte offsets of the request or the response, streamed and not, and waits each time until all
pages are free.

    tests/battery/disconnects.py [--count 1000] [--seed 1] [--url http://127.0.0.1:8000]

Prints one JSON line: where connections were closed, and the most steps that the server ran until the pages were free. The
server keeps running steps while it is polled, so the count includes steps during two polls; slow steps (--step-ms) make it
accurate."""

import argparse
import json
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support_py"))
from server_kit import Server, request_bytes  # noqa: E402


def random_request(draw: random.Random) -> bytes:
    close = {"Connection": "close"}  # so that a complete response ends the connection
    body = {"max_tokens": draw.choice([1, 20, 200]), "n": draw.randint(1, 3), "stream": draw.random() < 0.6, "ignore_eos": True,
            "temperature": 1, "seed": draw.randrange(1000)}
    text = "x" * draw.choice([1, 40, 400])
    if draw.random() < 0.5:
        return request_bytes("POST", "/v1/completions", body | {"prompt": text}, close)
    messages = [{"role": "user", "content": text}]
    return request_bytes("POST", "/v1/chat/completions", body | {"messages": messages}, close)


def look(server: Server) -> tuple[int, int, int]:
    """Returns pages in use, steps so far and open requests, queried in that order."""
    referenced = server.pages()["referenced"]
    text = server.ask("GET", "/metrics").body.decode()
    steps = next(line for line in text.splitlines() if line.startswith("octavo:steps_total"))
    return referenced, int(float(steps.rsplit(" ", 1)[1])), server.ask("GET", "/load").json()["server_load"]


def cut_one(server: Server, draw: random.Random) -> tuple[str, int, bool]:
    """Returns where it was cut, the steps until no page was in use, and whether the request was running."""
    data = random_request(draw)
    with server.wire(timeout=60) as wire:
        end = wire.cut if draw.random() < 0.5 else wire.close
        if draw.random() < 0.3:
            where = "request"
            wire.send(data[:draw.randrange(len(data))])
            time.sleep(draw.choice([0, 0.002]))
        else:
            where = "answer"
            wire.send(data)
            wanted = draw.choice([0, 0, 1, draw.randrange(300), draw.randrange(20_000)])
            if wanted == 0:  # queued, in prefill or not streamed: no response yet
                time.sleep(draw.choice([0, 0.001, 0.01, 0.05]))
            got = 0
            while got < wanted and (more := wire.receive()):
                got += len(more)
                if b"[DONE]" in more:
                    break
        running = server.pages()["referenced"] > 0
        _, before, _ = look(server)
        end()
    limit = time.monotonic() + 30
    while True:
        referenced, after, load = look(server)
        if referenced == 0 and load == 0:
            return where, after - before, running
        assert time.monotonic() < limit, f"{referenced} pages and {load} requests are left"


def run(server: Server, count: int, seed: int) -> dict:
    draw = random.Random(seed)
    server.wait_for_baseline()
    cuts = {"request": 0, "answer": 0}
    most, running_cuts = 0, 0
    for _ in range(count):
        where, steps, running = cut_one(server, draw)
        cuts[where] += 1
        running_cuts += running
        most = max(most, steps)
    return {"cut": cuts, "while_running": running_cuts, "most_steps_until_free": most}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--step-ms", type=int, default=30, help="the fake server's step time; long enough to count steps")
    parser.add_argument("--url", help="test this running server instead of starting one")
    flags = parser.parse_args()
    with Server.at(flags.url) if flags.url else Server.start(step_ms=flags.step_ms) as server:
        began = time.monotonic()
        figures = run(server, flags.count, flags.seed)
        print(json.dumps({"test": "disconnects"} | figures | {"seconds": round(time.monotonic() - began, 1)}))


if __name__ == "__main__":
    main()
