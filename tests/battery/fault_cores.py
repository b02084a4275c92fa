"""Cores that come and go while the server computes: the bits of its answers stay the same."""

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fault_kit  # noqa: F401 - first: it makes the others importable
import running_server
from prefix_replay import ask


def run(octavo: Path, model: Path, seconds: float, seed: int = 1) -> dict:
    prompts = [[{"role": "user", "content": f"{number}: tell a story about {number} trees"}] for number in range(6)]
    with running_server.running(octavo, model, "--no-enable-prefix-caching") as server:
        expected = [ask(server.url, messages).text for messages in prompts]
        mover = _Mover(server.process.pid, random.Random(seed))
        rounds, end = 0, time.monotonic() + seconds
        with ThreadPoolExecutor(3) as pool:
            while time.monotonic() < end:
                found = list(pool.map(lambda messages: ask(server.url, messages).text, prompts))
                assert found == expected, "an answer has other text"
                rounds += 1
        moves = mover.finish()
    return {"rounds": rounds, "moves": moves}


class _Mover:
    """Gives all threads of a process another set of cores, many times per second."""

    def __init__(self, pid: int, rng: random.Random):
        self.pid, self.rng, self.moves = pid, rng, 0
        self.cores = sorted(os.sched_getaffinity(pid))
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.stopping.wait(0.02):
            some = set(self.rng.sample(self.cores, self.rng.randint(1, len(self.cores))))
            for thread in os.listdir(f"/proc/{self.pid}/task"):
                try:
                    os.sched_setaffinity(int(thread), some)
                except ProcessLookupError:
                    continue  # it has ended
            self.moves += 1

    def finish(self) -> int:
        self.stopping.set()
        self.thread.join()
        return self.moves
