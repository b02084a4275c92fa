#!/usr/bin/env python3
"""Records a first session with Octavo in a terminal: docs/first-five-minutes.cast (asciinema version 2) and
docs/first-five-minutes.svg, an animation of the same lines with shortened pauses.

usage: tools/record_session.py OCTAVO MODEL.gguf   (takes about half a minute; every step is really executed)"""

import argparse
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import terminal_svg

DOCS = Path(__file__).parents[1] / "docs"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
# The commands of the session. A command that ends in & is a server: the next command waits until it accepts requests. Commands
# that the program does not have are skipped.
STEPS = [
    "octavo --version",
    "octavo doctor",
    f"octavo info {NAME} | head -9",
    f'octavo generate {NAME} "How many days are there in a week?"',
    f"octavo serve {NAME} &> serve.log &",
    """curl -s 127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' \\
  -d '{"messages": [{"role": "user", "content": "How many days are there in a week?"}], "temperature": 0, "max_tokens": 16}'""",
    """python3 -c 'from openai import OpenAI
client = OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="none")
print(client.completions.create(model=client.models.list().data[0].id, prompt="2, 4, 6,", max_tokens=9, temperature=0).choices[0].text)'""",
]
COLUMNS, ROWS = 104, 40
LONGEST_PAUSE = 1.0  # seconds, in the animation only; the cast has the real times
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


class Recording:
    def __init__(self, home: str):
        self.home = home  # replaced by ~ in the recording
        self.start = time.monotonic()
        self.events: list[tuple[float, str]] = []

    def add(self, text: str) -> None:
        text = text.replace(self.home, "~")
        self.events.append((time.monotonic() - self.start, text))
        sys.stdout.write(text.replace("\r\n", "\n"))

    def run(self, shell: str, folder: Path, env: dict) -> None:
        master, slave = pty.openpty()
        process = subprocess.Popen(["bash", "-c", shell], cwd=folder, env=env, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        try:
            while True:
                ready, _, _ = select.select([master], [], [], 0.1)
                if ready:
                    self.add(os.read(master, 65536).decode(errors="replace"))
                elif process.poll() is not None:
                    break
        except OSError:  # the child closed the terminal
            pass
        os.close(master)
        if process.wait() != 0:
            sys.exit(f"record_session: status {process.returncode}: {shell}")

    def save_cast(self, path: Path) -> None:
        head = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "Octavo: the first five minutes"}
        lines = [json.dumps(head)] + [json.dumps([round(at, 3), "o", text]) for at, text in self.events]
        path.write_text("\n".join(lines) + "\n")

    def lines(self) -> list[tuple[float, str]]:
        """Returns (completion time, text) of every line, with shortened pauses and the final state of progress bars."""
        shown, at, last, pending = [], 0.0, 0.0, ""
        for when, text in self.events:
            at += min(when - last, LONGEST_PAUSE)
            last = when
            *done, pending = (pending + text).replace("\r\n", "\n").split("\n")
            shown += [(at, line) for line in done]
        shown.append((at, pending))
        clean = [(at, ESCAPES.sub("", line.rsplit("\r", 1)[-1]).rstrip()) for at, line in shown]
        return [(at, part) for at, line in clean for part in terminal_svg.wrapped(line)]


def animated(lines: list[tuple[float, str]]) -> str:
    while lines and not lines[-1][1]:
        lines.pop()
    picture = terminal_svg.drawn("Octavo: the first five minutes", [text for _, text in lines])
    times = iter(at for at, _ in lines)
    picture = re.sub(r"<text ", lambda _: f'<text style="animation-delay:{next(times):.1f}s" ', picture)
    motion = ("@keyframes show { from { opacity: 0 } to { opacity: 1 } } text { animation: show .1s both; } "
              "@media (prefers-reduced-motion: reduce) { text { animation: none; } }</style>")
    return picture.replace("</style>", motion)


def steps_of(octavo: Path) -> list[str]:
    known = subprocess.run([octavo, "--help"], capture_output=True, text=True, check=True).stdout
    commands = set(re.findall(r"^  ([a-z]+) ", known, re.MULTILINE)) | {"--version"}
    return [step for step in STEPS if not step.startswith("octavo ") or step.split()[1] in commands]


def wait_for(port_is_open, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not port_is_open():
        if time.monotonic() > end:
            sys.exit("record_session: the server did not start")
        time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("octavo", type=Path)
    parser.add_argument("model", type=Path)
    options = parser.parse_args()
    server = None
    with tempfile.TemporaryDirectory() as folder_name:
        recording = Recording(folder_name)
        folder = Path(folder_name)
        (folder / NAME).symlink_to(options.model.resolve())
        (folder / "bin").mkdir()
        (folder / "bin" / "octavo").symlink_to(options.octavo.resolve())
        python = folder / "bin" / "python3"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')  # a symbolic link would not find the packages
        python.chmod(0o755)
        env = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": folder_name, "NO_COLOR": "1",
                            "COLUMNS": str(COLUMNS), "TERM": "xterm"}
        try:
            for step in steps_of(options.octavo):
                recording.add("$ " + step.replace("\n", "\r\n") + "\r\n")
                if step.endswith("&"):
                    server = subprocess.Popen(["bash", "-c", "exec " + step[:-1]], cwd=folder, env=env)
                    wait_for(lambda: "listening" in (folder / "serve.log").read_text() if (folder / "serve.log").exists() else False)
                else:
                    recording.run(step, folder, env)
                if recording.events[-1][1][-1:] != "\n":
                    recording.add("\r\n")
        finally:
            if server:
                server.send_signal(signal.SIGTERM)
                server.wait(timeout=60)
    recording.save_cast(DOCS / "first-five-minutes.cast")
    (DOCS / "first-five-minutes.svg").write_text(animated(recording.lines()))


if __name__ == "__main__":
    main()
