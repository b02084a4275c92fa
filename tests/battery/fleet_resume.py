#!/usr/bin/env python3
"""Kills random replicas of a fleet while clients stream, and has their answers continued by other replicas: every byte equals the
uncut answer's.

    tests/battery/fleet_resume.py [--streams 1000] [--together 12] [--isas amx,avx512-bf16,avx512,avx2] [--seed 1]
                                  [--model MODEL] [--pause 2 4]

Runs one `octavo serve` per instruction set, with SmolLM2 unless --model names another; sets that this processor lacks are replaced by
scalar. Every two to four seconds (--pause) one replica gets SIGKILL and is started again. Clients choose replicas at random and continue with `resume_token_ids` on another one
when theirs is gone. Prints one JSON line."""

import argparse
import contextlib
import http.client
import json
import os
import random
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPO = Path(__file__).parents[2]
for folder in ("tests/support_py", "tests/battery", "tools"):
    sys.path.insert(0, str(REPO / folder))

import smollm2_path  # noqa: E402
from fleet import Fleet  # noqa: E402
from resume_kills import random_request  # noqa: E402
from resuming import END, Received  # noqa: E402


def stream(url: str, path: str, body: dict) -> tuple[int, bytes]:
    """Status (0: no connection) and the bytes of a streamed answer, up to where it is cut."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=300)
    status, got = 0, b""
    with contextlib.closing(connection), contextlib.suppress(ConnectionError, http.client.HTTPException):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        status = answer.status
        while data := answer.read1(65536):
            got += data
    return status, got


class Client:
    """One answer, continued as often as it takes."""

    def __init__(self, urls: list[str], rng: random.Random):
        self.urls, self.rng, self.resumed = urls, rng, 0

    def ask(self, path: str, body: dict) -> dict:
        """All events by choice. Raises AssertionError if a replica refuses."""
        choices, so_far = body.get("n", 1), None
        while True:
            request = so_far.request(body, choices) if so_far else body
            status, data = stream(self.rng.choice(self.urls), path, request)
            if status == 400 and so_far and b"nothing is left to generate" in data:
                so_far = Received(resume=so_far.resume)  # only the end of the stream is missing: once more from the beginning
                continue
            if status not in (0, 200, 503):
                raise AssertionError(f"{status}: {data[:500]!r}")
            part = Received.of(data) if status == 200 else Received()
            if part.error:  # a replica that ends tells its clients, if it can
                part.error = None
            if so_far is None:
                so_far = part if part.resume else None
            else:
                so_far = joined(so_far, part)
                self.resumed += status == 200
            if so_far and ended(so_far):
                return so_far.whole()
            time.sleep(0.02)


def joined(before: Received, after: Received) -> Received:
    """The stream so far: what came after the last token ids of `before` comes again."""
    both = Received(resume=before.resume, events={choice: list(events) for choice, events in before.events.items()},
                    ids={choice: list(ids) for choice, ids in before.ids.items()}, late=after.late)
    for choice, events in after.events.items():
        both.events.setdefault(choice, []).extend(events)
    for choice, ids in after.ids.items():
        both.ids.setdefault(choice, []).extend(ids)
    return both


def ended(received: Received) -> bool:
    last = received.late.get(END, [b""])[-1]
    return any(mark in last for mark in (b"[DONE]", b"message_stop", b"response.completed", b"response.incomplete"))


class Killer:
    """Kills one replica after another."""

    def __init__(self, fleet: Fleet, rng: random.Random, pause: tuple[float, float]):
        self.fleet, self.rng, self.pause, self.kills, self.stopping = fleet, rng, pause, 0, threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self.stopping.wait(self.rng.uniform(*self.pause)):
            number = self.rng.randrange(len(self.fleet.ports))
            self.fleet.kill(number)
            self.kills += 1
            self.fleet.start(number)
            self.fleet.wait(number)

    def __enter__(self) -> "Killer":
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.stopping.set()
        self.thread.join()


def known_sets() -> set[str]:
    flags = Path("/proc/cpuinfo").read_text()
    needed = {"amx": "amx_bf16", "avx512-bf16": "avx512_bf16", "avx512": "avx512f", "avx2": "avx2"}
    return {"scalar"} | {isa for isa, flag in needed.items() if f" {flag}" in flags}


def run(octavo: Path, model: Path, streams: int, together: int, isas: list[str], seed: int, logs: Path,
        pause: tuple[float, float] = (2, 4)) -> dict:
    rng = random.Random(seed)
    figures = {"streams": streams, "failed": 0, "different": 0, "resumed": 0}
    # Drawn seeds and times are part of an answer, so the uncut answer is asked for with the `resume` of the other one.
    requests = [random_request(rng) for _ in range(streams)]
    flags = ["--max-model-len", 1024, "--kv-memory", "128MiB"]

    def one(number: int) -> dict | None:
        client = Client(fleet.urls, random.Random(seed * 100_000 + number))
        path, body = requests[number]
        try:
            answer = client.ask(path, body)
        except (AssertionError, OSError) as error:
            print(f"stream {number}: {error!r} {path} {json.dumps(body)}", file=sys.stderr)
            return None
        figures["resumed"] += client.resumed
        return answer

    with Fleet(octavo, model, len(isas), logs, lambda _: flags, lambda number: {"OCTAVO_ISA": isas[number], "OCTAVO_THREADS": "1"}) as fleet:
        with Killer(fleet, random.Random(seed), pause) as killer, ThreadPoolExecutor(together) as pool:
            answers = list(pool.map(one, range(streams)))
        figures["kills"] = killer.kills

        def same(number: int) -> bool:
            path, body = requests[number]
            resume = next(data["resume"] for events in answers[number].values() for event in events if (data := first_data(event)))
            status, whole = stream(fleet.urls[number % len(isas)], path, body | {"resume": resume})
            return status == 200 and Received.of(whole).whole() == answers[number]

        with ThreadPoolExecutor(together) as pool:
            whole = [number for number in range(streams) if answers[number] is not None]
            figures["different"] = sum(not equal for equal in pool.map(same, whole))
    figures["failed"] = sum(answer is None for answer in answers)
    return figures


def first_data(event: bytes) -> dict | None:
    """The JSON of an event with the object `resume`."""
    data = json.loads(event.split(b"data: ", 1)[1]) if b'"resume"' in event else None
    return data if data and "resume" in data else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--together", type=int, default=12)
    parser.add_argument("--isas", default="amx,avx512-bf16,avx512,avx2")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", type=Path, help="default: SmolLM2-135M")
    parser.add_argument("--pause", type=float, nargs=2, default=(2, 4), metavar=("FROM", "TO"), help="seconds between kills")
    options = parser.parse_args()
    known = known_sets()
    isas = [isa if isa in known else "scalar" for isa in options.isas.split(",")]
    octavo = Path(os.environ.get("OCTAVO_BUILD", REPO / "build" / "release")) / "src" / "cli" / "octavo"
    with tempfile.TemporaryDirectory() as folder:
        figures = run(octavo, options.model or smollm2_path.find(), options.streams, options.together, isas, options.seed, Path(folder),
                      tuple(options.pause))
    print(json.dumps({"test": "fleet_resume", "isas": isas} | figures))
    return 1 if figures["failed"] or figures["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
