"""A cgroup's memory limit that is lowered while the server works, to little more than its plan: nothing is killed."""

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fault_kit  # first: it makes the others importable
import running_server
from prefix_replay import ask

ROOM = 96 << 20  # beyond what is used at rest: for the text of requests and helper processes


def run(octavo: Path, model: Path, folder: Path, seconds: float) -> dict:
    with fault_kit.memory_group(4 << 30) as group:
        program = folder / "octavo-in-group"
        program.write_text(f'#!/bin/sh\necho $$ > {group}/cgroup.procs\nexec {octavo} "$@"\n')
        program.chmod(0o755)
        with running_server.running(program, model, "--kv-memory", "256MiB", "--max-num-batched-tokens", 256) as server:
            prompts = [[{"role": "user", "content": f"{number} " + "words " * 300}] for number in range(8)]
            expected = [ask(server.url, messages).text for messages in prompts]
            squeezed, rounds, end = [], 0, time.monotonic() + seconds
            with ThreadPoolExecutor(4) as pool:
                while time.monotonic() < end:
                    limit = fault_kit.memory_used(group) + ROOM if rounds % 2 == 0 else 4 << 30
                    with contextlib.suppress(OSError):  # busy: it cannot be lowered so far
                        fault_kit.memory_limit(group, limit)
                        squeezed.append(limit)
                    assert list(pool.map(lambda messages: ask(server.url, messages).text, prompts)) == expected
                    rounds += 1
            killed = fault_kit.kills(group)
        assert killed == 0, f"{killed} processes were killed"
    return {"rounds": rounds, "least_limit_mib": min(squeezed) >> 20, "killed": killed}
