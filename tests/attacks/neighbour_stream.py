#!/usr/bin/env python3
"""Streams completions one after another and prints when each token arrived. Runs as a process of its own, so that a test that
builds or sends a large body does not delay the clock.

    neighbour_stream.py PORT KEY     (KEY may be empty)

Lines of output: `start` for each new stream, `token SECONDS` (CLOCK_MONOTONIC, the same in all processes) for each event, and
`failed REASON`, after which the program exits. Ends when its standard input is closed."""

import json
import socket
import sys
import threading
import time

BODY = {"prompt": "Once upon a time", "max_tokens": 2000, "temperature": 0, "ignore_eos": True, "stream": True,
        "return_token_ids": True}  # with token ids, every token is an event, even one without text


def say(*words) -> None:
    print(*words, flush=True)


def stream_once(port: int, key: str) -> None:
    body = json.dumps(BODY).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    if key:
        head += f"Authorization: Bearer {key}\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)
        say("start")
        lines = connection.makefile("rb")
        first = lines.readline()
        if b" 200 " not in first:
            raise RuntimeError(f"{first.decode('latin-1').strip()}: {lines.read(1000)!r}")
        finished = False
        for line in lines:
            if line.startswith(b"data: {"):
                if b'"error"' in line[:20]:
                    raise RuntimeError(line.decode(errors="replace").strip())
                say("token", time.monotonic())
            finished = finished or line.startswith(b"data: [DONE]")
        if not finished:
            raise RuntimeError("the stream was cut")


def main() -> None:
    port, key = int(sys.argv[1]), sys.argv[2]

    def run() -> None:
        try:
            while True:
                stream_once(port, key)
        except Exception as error:  # the test reports it
            say("failed", repr(error).replace("\n", " "))

    threading.Thread(target=run, daemon=True).start()
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
