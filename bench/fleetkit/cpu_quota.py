"""Programs that get a fixed share of this machine's cores, so that each stands for a machine of its own. Linux, as root."""

import contextlib
import os
import shlex
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

PERIOD_US = 10_000
V1, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


def make_group(name: str, cores: float) -> Path:
    """A new cgroup whose processes together use at most that many cores."""
    quota = round(cores * PERIOD_US)
    group = (V1 if (V1 / "cpu.cfs_quota_us").exists() else V2) / name
    group.mkdir()
    if group.parent == V1:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(quota))
    else:
        (V2 / "cgroup.subtree_control").write_text("+cpu")
        (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
    return group


def remove_group(group: Path) -> None:
    for _ in range(50):
        for process in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        with contextlib.suppress(OSError):  # a killed process leaves its group a little later
            group.rmdir()
            return
        time.sleep(0.1)


@contextlib.contextmanager
def programs(program: Path, count: int, cores: float, folder: Path) -> Iterator[list[Path]]:
    """As many scripts that run the program, each in a group of its own with `cores` cores. Raises RuntimeError if groups cannot be made."""
    with contextlib.ExitStack() as stack:
        scripts = []
        for number in range(count):
            try:
                group = make_group(f"octavo-{uuid.uuid4().hex[:8]}", cores)
            except OSError as error:
                raise RuntimeError(f"cannot limit processes to {cores:.2f} cores ({error}); run as root, or use --cores-each 0") from error
            stack.callback(remove_group, group)
            script = folder / f"octavo-{number}"
            script.write_text(f'#!/bin/sh\necho $$ > {group}/cgroup.procs && exec {shlex.quote(str(program))} "$@"\n')
            script.chmod(0o755)
            scripts.append(script)
        yield scripts
