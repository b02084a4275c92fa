"""What the tests of machine faults share. Linux only."""

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "support_py"), str(TESTS.parent / "tools")]
sys.path.append(str(TESTS / "e2e"))


class CannotMount(Exception):
    """This machine lets nobody but root mount a file system, or not even root."""


class SmallDisk:
    """A tmpfs of `size` bytes at `folder`, in a mount namespace of its own, so that only programs started through it see it."""

    def __init__(self, folder: Path, size: int):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        as_user = [] if os.geteuid() == 0 else ["--map-root-user"]
        script = 'mount -t tmpfs -o "size=$1" octavo-test "$2" && echo mounted && exec sleep 100000'
        self.holder = subprocess.Popen(
            ["unshare", "--mount", *as_user, "sh", "-c", script, "sh", str(_whole_pages(size)), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if self.holder.stdout.readline() != "mounted\n":
            raise CannotMount(self.holder.stderr.read())

    def __enter__(self) -> "SmallDisk":
        return self

    def __exit__(self, *_) -> None:
        self.holder.kill()
        self.holder.communicate()

    @property
    def seen(self) -> Path:
        """The folder as this process sees it."""
        return Path(f"/proc/{self.holder.pid}/root{self.folder}")

    def command(self, *words) -> list[str]:
        """The command, started where the disk is."""
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", "--target", str(self.holder.pid), "--mount", *user, f"--wd={os.getcwd()}", "--", *map(str, words)]

    def program(self, path: Path, folder: Path) -> Path:
        """A program that starts the one at `path` where the disk is, with the same process id."""
        script = folder / f"{path.name}-on-small-disk"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(self.command(path))} "$@"\n')
        script.chmod(0o755)
        return script

    def fill(self) -> None:
        """Leaves no room for another byte."""
        while True:
            space = os.statvfs(self.seen)
            try:
                self.resize((space.f_blocks - space.f_bfree) * space.f_frsize)
                return
            except subprocess.CalledProcessError:
                continue  # it has grown since

    def resize(self, size: int) -> None:
        subprocess.run(
            self.command("mount", "-o", f"remount,size={_whole_pages(size)}", self.folder), check=True, stderr=subprocess.DEVNULL
        )


def _whole_pages(size: int) -> int:
    """tmpfs has no limit if its size is 0."""
    return max(4096, size // 4096 * 4096)


@contextlib.contextmanager
def memory_group(limit: int) -> Iterator[Path]:
    """A memory cgroup below this process's own. Yields its folder; memory_limit() changes the limit, enter() moves a process into it."""
    own = _own_memory_group()
    group = own / f"octavo-test-{os.getpid()}"
    try:
        group.mkdir()
        memory_limit(group, limit)
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        raise CannotMount(f"no memory cgroup can be made: {error}") from None
    try:
        yield group
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()


def _own_memory_group() -> Path:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return Path("/sys/fs/cgroup/memory" + path)
        if (
            number == "0"
            and (group := Path("/sys/fs/cgroup" + path) / "cgroup.controllers").exists()
            and "memory" in group.read_text()
        ):
            return group.parent
    raise CannotMount("this machine has no memory cgroup")


def _file(group: Path, *names: str) -> Path:
    return next((group / name for name in names if (group / name).exists()), group / names[0])


def memory_limit(group: Path, limit: int) -> None:
    _file(group, "memory.limit_in_bytes", "memory.max").write_text(str(limit))


def memory_used(group: Path) -> int:
    return int(_file(group, "memory.usage_in_bytes", "memory.current").read_text())


def kills(group: Path) -> int:
    """How many processes the kernel has killed for want of memory in it."""
    words = _file(group, "memory.oom_control", "memory.events").read_text().split()
    return int(words[words.index("oom_kill") + 1])


def enter(group: Path) -> None:
    """To be called in the child process, before it executes a program."""
    (group / "cgroup.procs").write_text(str(os.getpid()))
