#!/usr/bin/env python3
"""Sends SIGTERM during streams: no stream is cut within the drain timeout; after it, each stream ends with an error.

    tests/battery/sigterm.py [--rounds 50]

Every round starts a fake server and streams, and terminates the server. Prints one JSON line."""

import argparse
import json
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support_py"))
from server_kit import Answer, Server, request_bytes  # noqa: E402

TOKENS = 40


def stream_body(tokens: int, number: int) -> dict:
    return {"prompt": f"stream {number}", "stream": True, "max_tokens": tokens, "ignore_eos": True, "temperature": 1,
            "seed": number, "return_token_ids": True}


class Streams:
    """Concurrent streams. The constructor returns when all of them have started."""

    def __init__(self, server: Server, count: int, tokens: int):
        self.answers: list[Answer | Exception] = []
        self.begun = threading.Semaphore(0)
        self.threads = [threading.Thread(target=self._read, args=(server, tokens, i)) for i in range(count)]
        for thread in self.threads:
            thread.start()
        for _ in self.threads:
            self.begun.acquire()

    def _read(self, server: Server, tokens: int, number: int) -> None:
        try:
            with server.wire(timeout=60) as wire:
                wire.send(request_bytes("POST", "/v1/completions", stream_body(tokens, number)))
                answer = wire.head()
                answer.body = wire.chunk()
                self.begun.release()
                while data := wire.chunk():
                    answer.body += data
            self.answers.append(answer)
        except Exception as error:  # counted in the report
            self.begun.release()
            self.answers.append(error)

    def finish(self) -> list[Answer]:
        for thread in self.threads:
            thread.join(90)
        failed = [answer for answer in self.answers if isinstance(answer, Exception)]
        assert not failed, f"{len(failed)} streams were cut, like: {failed[0]!r}"
        return self.answers


def tokens_of(answer: Answer) -> int:
    chunks = [event for event in answer.events() if event != "[DONE]"]
    return sum(len(choice["token_ids"]) for chunk in chunks for choice in chunk.get("choices", ()))


def wait_for_red(server: Server) -> float:
    """Returns the seconds until /readyz is 503."""
    began = time.monotonic()
    while server.ask("GET", "/readyz").status != 503:
        assert time.monotonic() - began < 5, "/readyz stays green"
    return time.monotonic() - began


def inside_the_window(streams: int = 12, step_ms: int = 10) -> dict:
    """No stream is cut; the process exits with status 0 as soon as all have ended."""
    with Server.start(step_ms=step_ms, drain_timeout=30_000, max_num_seqs=16) as server:
        running = Streams(server, streams, TOKENS)
        kept = server.wire()
        assert kept.send(request_bytes("GET", "/version")).answer().status == 200
        server.terminate()
        began = time.monotonic()
        red = wait_for_red(server)
        assert server.ask("GET", "/livez").status == 200
        refused = server.ask("POST", "/v1/completions", {"prompt": "too late"})
        assert refused.status == 503 and int(refused.headers["retry-after"]) >= 1, refused
        # Keep-alive connections are closed.
        last = kept.send(request_bytes("POST", "/v1/completions", {"prompt": "too late"})).answer()
        assert last.status == 503 and last.headers["connection"] == "close", last
        kept.close()
        for answer in running.finish():
            assert answer.body.endswith(b"data: [DONE]\n\n") and tokens_of(answer) == TOKENS, answer
        streams_done = time.monotonic()
        code = server.process.wait(31)
        assert code == 0, f"left with {code}"
        return {"red_after_s": red, "left_after_streams_s": time.monotonic() - streams_done,
                "drain_s": time.monotonic() - began}


def past_the_window(streams: int = 6, drain_ms: int = 300) -> dict:
    """Each stream ends with an error and [DONE]."""
    with Server.start(step_ms=20, drain_timeout=drain_ms, max_num_seqs=8) as server:
        running = Streams(server, streams, 900)
        server.terminate()
        began = time.monotonic()
        for answer in running.finish():
            *_, error, done = answer.events()
            assert done == "[DONE]" and error["error"]["code"] == 503, answer.body[-300:]
        code = server.process.wait(drain_ms / 1000 + 1)
        took = time.monotonic() - began
        assert code == 0, f"left with {code}"
        assert took <= drain_ms / 1000 + 1, took
        return {"left_after_s": took}


def twice() -> dict:
    """A second signal ends the process immediately."""
    with Server.start(step_ms=20, drain_timeout=30_000) as server:
        running = Streams(server, 2, 900)
        server.terminate()
        wait_for_red(server)
        server.terminate()
        began = time.monotonic()
        code = server.process.wait(1)
        assert code != 0
        for thread in running.threads:
            thread.join(30)
        return {"left_after_s": time.monotonic() - began}


def run(rounds: int) -> dict:
    inside = [inside_the_window() for _ in range(rounds)]
    past = [past_the_window() for _ in range(rounds)]
    second = [twice() for _ in range(rounds)]

    def most(figures: list[dict], name: str) -> float:
        return round(max(figure[name] for figure in figures), 3)

    return {"rounds": rounds, "streams_cut": 0, "readyz_red_after_s": most(inside, "red_after_s"),
            "left_after_last_stream_s": most(inside, "left_after_streams_s"),
            "left_past_the_window_s": most(past, "left_after_s"), "left_after_second_signal_s": most(second, "left_after_s")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    flags = parser.parse_args()
    print(json.dumps({"test": "sigterm"} | run(flags.rounds)))


if __name__ == "__main__":
    main()
