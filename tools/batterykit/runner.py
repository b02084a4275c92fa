"""Runs parts piece by piece until their count, a failure or the end of the time, and records each piece."""

import datetime
import os
import shlex
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from .parts import Battery, Part, filled
from .record import REPO, Entry, Record

GRACE_SECONDS = 20  # between SIGTERM and SIGKILL
MARK = "OCTAVO_BATTERY_RUN"  # in the environment of a command and of all that it starts


@dataclass
class Runner:
    battery: Battery
    record: Record
    commit: str
    folder: Path  # for logs and models
    smollm2: Path | None
    deadline: float = float("inf")  # of time.monotonic()
    resume: bool = False

    def run(self, part: Part) -> Entry | None:
        """Returns what was reached, or None if the time ended before the part began."""
        old = self.record.get(part.name)
        continues = self.resume and old and old.commit == self.commit
        entry = replace(old) if continues else Entry(self.commit, today(), 0, 0, "partial")
        if entry.result == "passed":
            return entry
        for number, command in enumerate(self._preparations(part)):
            if time.monotonic() >= self.deadline:
                return None
            status, _ = self.shell(command, part.name, append=number > 0)
            if status != 0:
                return self._ended(part, old, entry, status)
        while entry.count < part.count:
            if time.monotonic() >= self.deadline:
                return entry if entry.count else None
            status, seconds = self.shell(self.command(part, entry.count), part.name)
            if status != 0:
                return self._ended(part, old, entry, status)
            size = part.size(entry.count)
            entry = replace(
                entry,
                count=entry.count + size,
                seconds=round(entry.seconds + seconds, 1),
                date=today(),
                result="passed" if entry.count + size >= part.count else "partial",
            )
            self.record.put(part.name, entry)
        return entry

    def trial(self, part: Part, count: int) -> bool:
        """One run of the command with this count, not recorded. Returns whether it passed."""
        for number, command in enumerate([*self._preparations(part), self.command(replace(part, count=count, piece=0), 0)]):
            if self.shell(command, part.name, append=number > 0)[0] != 0:
                return False
        return True

    def command(self, part: Part, done: int) -> str:
        values = {
            "count": str(part.size(done)),
            "seed": str(part.seed(done)),
            "variant": part.variant(done),
            **self.battery.paths,
            **{name: shlex.quote(str(self._model(name))) for name in self.battery.models},
        }
        if self.smollm2:
            values["smollm2"] = shlex.quote(str(self.smollm2))
        return filled(part.command, values)

    def shell(self, command: str, name: str, append: bool = True) -> tuple[int | None, float]:
        """Returns the exit status, None if the time ended before, and the seconds. The output goes to NAME.log."""
        began = time.monotonic()
        mark = uuid.uuid4().hex
        with (self.folder / f"{name}.log").open("ab" if append else "wb") as log:
            log.write(f"$ {command}\n".encode())
            log.flush()
            process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=REPO,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=os.environ | {"PATH": os.environ["PATH"] + ":" + cargo_folder(), MARK: mark},
            )
            try:
                left = self.deadline - began
                status = process.wait(None if left == float("inf") else max(0.0, left))
            except subprocess.TimeoutExpired:
                status = None
            finally:
                end(process)
                kill_marked(mark)
        return status, time.monotonic() - began

    def _ended(self, part: Part, old: Entry | None, entry: Entry, status: int | None) -> Entry:
        """After a piece that failed, or that the end of the time cut off. A piece that was cut off replaces no older result."""
        entry.result = "failed" if status is not None else "partial"
        if status is not None or old is None:
            self.record.put(part.name, replace(entry, date=today()))
        return entry

    def _preparations(self, part: Part) -> list[str]:
        """Builds, and makes models that do not exist yet."""
        missing = [name for name in self.battery.models_of(part) if not self._model(name).exists()]
        return [part.build] * bool(part.build) + [self._making(name) for name in missing]

    def _making(self, name: str) -> str:
        path = self._model(name)
        unfinished = path.with_name("part-" + path.name)
        make = filled(self.battery.models[name], {"out": shlex.quote(str(unfinished))})
        return f"mkdir -p {path.parent} && rm -rf {unfinished} && {self.battery.paths['python']} {make} && mv {unfinished} {path}"

    def _model(self, name: str) -> Path:
        return self.folder / "models" / (name + (".gguf" if name.endswith("_gguf") else ""))


def end(process: subprocess.Popen) -> None:
    """Ends the command's process group if it still runs."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def kill_marked(mark: str) -> None:
    """Kills what the command left behind in other sessions, such as a server that a test had stopped with SIGSTOP."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in environment.read_bytes():
                os.kill(int(environment.parent.name), signal.SIGKILL)
        except OSError:
            continue  # it has ended, or belongs to another user


def cargo_folder() -> str:
    return str(Path.home() / ".cargo" / "bin")


def today() -> str:
    return datetime.date.today().isoformat()
