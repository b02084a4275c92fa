"""A wall clock that jumps by hours and years, forward and back: streams, deadlines and batches do not notice. Needs libfaketime
(Debian: apt install faketime)."""

import os
import time
from pathlib import Path

import fault_kit  # noqa: F401 - first: it makes the others importable
from server_kit import Canary, Server, fake_server_path

JUMPS = ("+1h", "-1h", "+400d", "-400d", "+10y", "+0")


def library() -> Path | None:
    """OCTAVO_FAKETIME, or Debian's."""
    given = os.environ.get("OCTAVO_FAKETIME")
    places = [Path(given)] if given else Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
    return next((path for path in places if path.exists()), None)


def run(folder: Path, rounds: int, preload: Path) -> dict:
    clock = folder / "clock"
    clock.write_text("+0")
    program = folder / "server-with-clock"
    program.write_text(
        f"#!/bin/sh\nLD_PRELOAD={preload} FAKETIME_TIMESTAMP_FILE={clock} FAKETIME_NO_CACHE=1 "
        f'FAKETIME_DONT_FAKE_MONOTONIC=1 exec {fake_server_path()} "$@"\n'
    )
    program.chmod(0o755)
    with Server.start(program, step_ms=2, pages=2048, state_dir=folder / "state") as server:
        canary = Canary(server)
        seen = set()
        for number in range(rounds):
            clock.write_text(JUMPS[number % len(JUMPS)])
            time.sleep(0.05)
            answer = server.ask(
                "POST", "/v1/completions", {"prompt": "a", "max_tokens": 20, "ignore_eos": True}, {"x-request-timeout": "20"}
            )
            assert answer.status == 200, answer.body
            seen.add(answer.json()["created"] // 86_400)
            stored = server.ask("POST", "/v1/responses", {"model": "fake", "input": "a", "max_output_tokens": 2}).json()
            assert server.ask("GET", f"/v1/responses/{stored['id']}").status == 200
        assert rounds < len(JUMPS) or len(seen) > 2, "the clock has not jumped"
        canary.finish()
        assert server.ask("GET", "/readyz").status == 200
        server.wait_for_baseline()
    return {"jumps": rounds, "songs": canary.songs}
