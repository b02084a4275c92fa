"""Fixtures of the documentation tests: the program, the model, and a count of executed blocks."""

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
sys.path[:0] = [str(REPO / "tools"), str(Path(__file__).parent)]

import smollm2_path  # noqa: E402

COUNTS: Counter = Counter()


@pytest.fixture(scope="session")
def octavo() -> Path:
    path = Path(os.environ.get("OCTAVO_BUILD", REPO / "build" / "release")) / "src" / "cli" / "octavo"
    return path if path.exists() else pytest.fail(f"{path} is not built (OCTAVO_BUILD chooses the build folder)")


@pytest.fixture(scope="session")
def smollm2_gguf() -> Path:
    return smollm2_path.find() or pytest.fail("no SmolLM2 GGUF: run tools/bootstrap.sh")


@pytest.fixture(scope="session")
def counts() -> Counter:
    return COUNTS


def pytest_terminal_summary(terminalreporter):
    if COUNTS:
        terminalreporter.section("blocks of the documentation")
        for what, count in sorted(COUNTS.items(), key=lambda item: (not item[0].startswith("executed"), -item[1])):
            terminalreporter.write_line(f"{count:4} {what}")
