"""Hostile images (bad_images.py) end with a message, quickly and in little memory, and never with a crash."""

import json
import os
import subprocess
import time

import pytest
from bad_images import BAD, HARMLESS

SECONDS = 1
MEBIBYTES = 300


def probe(build_dir, image) -> tuple[dict, float, float]:
    """The answer of a process of its own, its seconds and its peak memory in MiB."""
    start = time.monotonic()
    program = subprocess.Popen([build_dir / "tests" / "image_probe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.stdin.write(json.dumps({"image": str(image)}).encode())
    program.stdin.close()
    answer = program.stdout.read()
    _, status, usage = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - start
    assert program.returncode == 0, f"ended with {program.returncode} after {answer!r}"
    unit = 1 << 20 if os.uname().sysname == "Darwin" else 1 << 10
    return json.loads(answer), seconds, usage.ru_maxrss / unit


def slowness(build_dir) -> float:
    """What a sanitizer may cost."""
    return 10 if "asan" in build_dir.name else 1


@pytest.mark.parametrize("name", BAD)
def test_refused(name, build_dir, tmp_path):
    (tmp_path / "image").write_bytes(BAD[name])
    answer, seconds, mebibytes = probe(build_dir, tmp_path / "image")
    assert answer.get("status") == 400 and answer["error"], answer
    assert seconds < SECONDS * slowness(build_dir)
    assert mebibytes < MEBIBYTES * slowness(build_dir)


@pytest.mark.parametrize("name", HARMLESS)
def test_decoded(name, build_dir, tmp_path):
    (tmp_path / "image").write_bytes(HARMLESS[name])
    answer, _, _ = probe(build_dir, tmp_path / "image")
    assert answer == {"width": 4, "height": 2}


def test_there_are_many():
    assert len(BAD) >= 60
