"""The router smg in front of servers, in an environment of its own."""

import contextlib
import subprocess
from pathlib import Path

import tool_venv
from fleet import free_port, wait_for

PACKAGES = ("smg==1.13.0",)


def python() -> Path | None:
    return tool_venv.python("smg-venv", PACKAGES, ["-m", "smg", "--help"], with_dependencies=True)


@contextlib.contextmanager
def running(urls: list[str], policy: str, log: Path, *flags: str):
    """The URL of a router in front of the servers."""
    port = free_port()
    command = [python(), "-m", "smg", "launch", "--host", "127.0.0.1", "--port", str(port), "--policy", policy, "--worker-urls", *urls,
               "--prometheus-port", str(free_port()), *flags]
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/readiness", process, log)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)
