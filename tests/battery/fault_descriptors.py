"""A server without a free file descriptor: open streams go on, new work is refused or waits, and all is well when there are some
again."""

import contextlib
import os
import resource
import time

import fault_kit  # noqa: F401 - first: it makes the others importable
from server_kit import Canary, Closed, Server

GRAMMAR = {"prompt": "a", "max_tokens": 4, "structured_outputs": {"regex": "[a-z]{1,3}"}}


def run(rounds: int, **flags) -> dict:
    """`flags`: of the server."""
    statuses: dict[int, int] = {}
    with Server.start(step_ms=2, pages=2048, **flags) as server:
        canary = Canary(server)
        pid = server.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        for number in range(rounds):
            used = len(os.listdir(f"/proc/{pid}/fd"))
            kept = server.wire(timeout=20)  # a connection that is there already can still send requests
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 2 + number % 8, before[1]))
            crowd = []
            with contextlib.suppress(OSError):
                crowd = [server.wire(timeout=1) for _ in range(24)]
            for body in (GRAMMAR, {"prompt": "a", "max_tokens": 2}):
                status = ask(server, kept, body)
                statuses[status] = statuses.get(status, 0) + 1
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
            for wire in [*crowd, kept]:
                wire.close()
            end = time.monotonic() + 10
            while server.ask("GET", "/readyz").status != 200:
                assert time.monotonic() < end, "the server is not ready again"
            for body in (GRAMMAR, {"prompt": "a", "max_tokens": 2}):
                answer = server.ask("POST", "/v1/completions", body)
                assert answer.status == 200, answer.body
        canary.finish()
        server.wait_for_baseline()
    assert set(statuses) <= {200, 429, 503}, statuses
    return {"rounds": rounds, "statuses": statuses, "songs": canary.songs}


def ask(server: Server, wire, body: dict) -> int:
    from server_kit import request_bytes

    try:
        return wire.send(request_bytes("POST", "/v1/completions", body)).answer("POST").status
    except (Closed, OSError):
        return 0
