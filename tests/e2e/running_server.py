"""Runs `octavo serve` as a separate process for tests."""

import contextlib
import os
import re
import subprocess
import threading
from dataclasses import dataclass, field


@dataclass
class RunningServer:
    url: str
    process: subprocess.Popen
    lines: list[str] = field(default_factory=list)  # its output, including the log


@contextlib.contextmanager
def running(octavo, model, *flags, env: dict | None = None):
    """A server on a free port, of a model or a list of models. Leaving the block terminates it and checks its exit status."""
    models = model if isinstance(model, list) else [model]
    command = [str(part) for part in (octavo, "serve", *models, "--port", 0, *flags)]
    clean = {name: value for name, value in os.environ.items() if name != "OCTAVO_API_KEY"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=clean | (env or {}))
    lines: list[str] = []
    try:
        yield RunningServer(_wait_for_url(process, lines), process, lines)
    except BaseException:
        process.kill()
        raise
    finally:
        process.terminate()
        assert process.wait(timeout=60) in (0, -9), "".join(lines[-50:])


def _wait_for_url(process: subprocess.Popen, lines: list[str]) -> str:
    for line in process.stdout:
        lines.append(line)
        if found := re.search(r"listening\s+(http://\S+)", line):
            # A full pipe would block the server.
            threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True).start()
            return found[1]
    raise AssertionError(f"the server exited with {process.wait()}: {''.join(lines[-20:])}")
