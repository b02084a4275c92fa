#!/usr/bin/env python3
"""Keeps thousands of streams open on several servers with a fake engine: memory per stream, delay of tokens, streams lost.

    tests/battery/open_streams.py [--streams 10000] [--servers 4] [--seconds 40] [--step-ms 1000]

Every stream gets one token per step; tokens are bytes, so not all of them make an event. The delay of a token is counted from the first arrival of the same step on the same server, so it
is what the number of streams adds; this program, which reads all of them, is part of it. Prints one JSON line."""

import argparse
import asyncio
import contextlib
import json
import resource
import sys
import time
from pathlib import Path

REPO = Path(__file__).parents[2]
sys.path.insert(0, str(REPO / "tests" / "support_py"))

from server_kit import Server, percentile, request_bytes  # noqa: E402

FLAGS = {"max_connections": 20_000, "max_open_requests": 20_000, "max_open_sequences": 20_000, "max_open_bytes": 1 << 30,
         "max_num_batched_tokens": 8192, "max_num_seqs": 4096, "pages": 1 << 16, "max_model_len": 256}


class Stream:
    """One streamed completion: when each event arrived, and how it ended."""

    def __init__(self):
        self.times: list[float] = []
        self.ended = False

    async def run(self, port: int, request: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.closing(writer):
            writer.write(request)
            while data := await reader.read(65536):
                now = time.monotonic()
                self.times += [now] * data.count(b'"choices"')
                if b"data: [DONE]" in data:
                    self.ended = True
                    return


async def open_streams(servers: list[Server], count: int, tokens: int) -> list[list[Stream]]:
    """The streams of each server, all ended or cut."""
    request = request_bytes("POST", "/v1/completions", {"prompt": "hello", "max_tokens": tokens, "ignore_eos": True, "stream": True})
    streams = [[Stream() for _ in range(count // len(servers))] for _ in servers]
    tasks = []
    for number in range(len(streams[0])):
        for server, own in zip(servers, streams):
            tasks.append(asyncio.create_task(own[number].run(server.port, request)))
        if number % 50 == 49:  # no more connections at once than the backlog takes
            await asyncio.sleep(0.02)
    measured = asyncio.create_task(resident_when_begun(servers, streams))
    await asyncio.gather(*tasks, return_exceptions=True)
    measured.cancel()
    return streams


RESIDENT: list[int] = []


async def resident_when_begun(servers: list[Server], streams: list[list[Stream]]) -> None:
    """Takes the memory of the servers when all streams have begun."""
    while any(not stream.times for own in streams for stream in own):
        await asyncio.sleep(0.5)
    RESIDENT.extend(resident_bytes(server) for server in servers)


def resident_bytes(server: Server) -> int:
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def delays(own: list[Stream], step: float) -> list[float]:
    """Seconds from the first arrival of each step's tokens to the others', when all streams run."""
    begin = max(stream.times[0] for stream in own if stream.times)
    end = min(stream.times[-1] for stream in own if stream.times)
    arrivals = sorted(at for stream in own for at in stream.times if begin < at < end)
    found, first = [], None
    for at in arrivals:
        if first is None or at - first > step / 2:
            first = at
        found.append(at - first)
    return found


def run(count: int, servers: int, seconds: int, step_ms: int) -> dict:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    RESIDENT.clear()
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(Server.start(step_ms=step_ms, **FLAGS)) for _ in range(servers)]
        idle = [resident_bytes(server) for server in running]
        streams = asyncio.run(open_streams(running, count, seconds * 1000 // step_ms))
    every = [stream for own in streams for stream in own]
    late = [delay for own in streams for delay in delays(own, step_ms / 1000)]
    return {"streams": len(every), "servers": servers, "lost": sum(not stream.ended for stream in every),
            "kib_per_stream": round((sum(RESIDENT) - sum(idle)) / len(every) / 1024, 1) if RESIDENT else None,
            "delay_ms": {f"p{share}": round(1000 * percentile(late, share / 100), 1) for share in (50, 99)},
            "events": sum(len(stream.times) for stream in every)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--step-ms", type=int, default=1000)
    options = parser.parse_args()
    figures = run(options.streams, options.servers, options.seconds, options.step_ms)
    print(json.dumps({"test": "open_streams"} | figures))
    return 1 if figures["lost"] or figures["kib_per_stream"] is None else 0


if __name__ == "__main__":
    sys.exit(main())
