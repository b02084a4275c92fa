"""A model file that becomes shorter while it is loaded is an error with its name; once it is loaded, its files are not needed."""

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import fault_kit  # noqa: F401 - first: it makes the others importable
import running_server
from prefix_replay import ask


def wait_until_mapped(process: subprocess.Popen, file: Path) -> None:
    while process.poll() is None:
        try:
            if file.name in Path(f"/proc/{process.pid}/maps").read_text():
                return
        except OSError:
            continue


def while_loading(octavo: Path, model: Path, folder: Path, pauses: list[float]) -> dict:
    """`model`: a file. The process stands still while the file is cut, so that loading is never over too soon."""
    refused = 0
    for number, pause in enumerate(pauses):
        copy = folder / f"cut-{number}{model.suffix}"
        shutil.copy(model, copy)
        command = [str(octavo), "generate", str(copy), "Hello", "--max-tokens", "4"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until_mapped(process, copy)
        time.sleep(pause)
        process.send_signal(signal.SIGSTOP)
        os.truncate(copy, random.Random(number).randrange(copy.stat().st_size // 2))
        process.send_signal(signal.SIGCONT)
        _, errors = process.communicate(timeout=120)
        copy.unlink()
        assert process.returncode in (0, 1), (pause, process.returncode, errors)
        if process.returncode == 1:
            refused += 1
            assert copy.name in errors and "shorter" in errors, errors
    return {"cut": len(pauses), "refused": refused}


def while_serving(octavo: Path, model: Path, folder: Path) -> dict:
    copy = folder / f"served{model.suffix}"
    shutil.copy(model, copy)
    messages = [{"role": "user", "content": "Count to ten."}]
    with running_server.running(octavo, copy) as server:
        before = ask(server.url, messages).text
        os.truncate(copy, 0)
        for path in ("/v1/models", "/metrics", "/api/tags"):
            assert get(server.url + path) == 200
        assert ask(server.url, [*messages, {"role": "assistant", "content": "One"}, messages[0]]).text
        assert ask(server.url, messages).text == before
    return {"served": True}


def get(url: str) -> int:
    from urllib.request import urlopen

    with urlopen(url, timeout=30) as answer:
        return answer.status
