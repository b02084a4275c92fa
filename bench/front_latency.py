#!/usr/bin/env python3
"""Measures what the front adds to a request: the same requests to a fake model directly and through a front, in turns.

    bench/front_latency.py [--requests 2000] [--build build/release]

Prints one JSON line: percentiles of the time to a whole response, of the time to the first token and of the time between tokens,
in milliseconds, direct and through the front, and the difference; and the processor time of the front per request and per token, in
microseconds, which hardly depends on what else the machine does (Linux only)."""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).parents[1]
sys.path.insert(0, str(REPO / "tests" / "support_py"))

from processes import processor_seconds  # noqa: E402
from server_kit import Server, Wire, percentile, request_bytes  # noqa: E402


def whole_time(wire: Wire, body: dict) -> float:
    began = time.perf_counter()
    answer = wire.send(request_bytes("POST", "/v1/completions", body)).answer()
    assert answer.status == 200, answer.body
    return time.perf_counter() - began


def stream_times(wire: Wire, body: dict) -> tuple[float, list[float]]:
    last = time.perf_counter()
    wire.send(request_bytes("POST", "/v1/completions", body | {"stream": True}))
    assert wire.head().status == 200
    gaps = []
    while wire.chunk():
        now = time.perf_counter()
        gaps.append(now - last)
        last = now
    return gaps[0], gaps[1:-1]


def front_cost(front: Server, wire: Wire, body: dict, tokens: int) -> float:
    """Microseconds of the front's processor time per streamed request of that many tokens."""
    requests = 50
    began = processor_seconds(front.process.pid)
    for _ in range(requests):
        stream_times(wire, body | {"max_tokens": tokens})
    return 1e6 * (processor_seconds(front.process.pid) - began) / requests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--build", type=Path, default=REPO / "build" / "release")
    arguments = parser.parse_args()
    program = arguments.build / "tests" / "fake_server"
    body = {"model": "fake", "prompt": "hello " * 100, "max_tokens": 16, "ignore_eos": True, "temperature": 0}
    times: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "child"
        with Server.start(program, uds=socket, behind_front=True, step_ms=1), \
                Server.start(arguments.build / "tests" / "fake_front", child=f"fake={socket}") as front, \
                Server.start(program, step_ms=1) as direct, front.wire() as through, direct.wire() as straight:
            for _ in range(arguments.requests):
                for name, wire in (("direct", straight), ("front", through)):
                    kind = times.setdefault(name, {"whole": [], "first_token": [], "between_tokens": []})
                    kind["whole"].append(whole_time(wire, body))
                    first, gaps = stream_times(wire, body)
                    kind["first_token"].append(first)
                    kind["between_tokens"] += gaps
            short, long = (front_cost(front, through, body, tokens) for tokens in (1, 101))
    figures = {name: {kind: {f"p{share}": round(1000 * percentile(each, share / 100), 3) for share in (50, 99)}
                      for kind, each in kinds.items()} for name, kinds in times.items()}
    figures["added"] = {kind: {share: round(figures["front"][kind][share] - figures["direct"][kind][share], 3)
                               for share in ("p50", "p99")} for kind in figures["front"]}
    figures["processor_us"] = {"per_request": round(short), "per_token": round((long - short) / 100, 1)}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
