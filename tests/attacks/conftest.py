"""Fixtures of the attack tests. They measure time, so .ci/run runs them one at a time."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REPO = HERE.parents[1]
sys.path[:0] = [str(HERE), str(REPO / "tools"), str(REPO / "tests" / "support_py")]
sys.path.append(str(REPO / "tests" / "e2e"))  # running_server; last, because that folder has a conftest too

import attack_kit  # noqa: E402

if sys.platform != "linux":
    collect_ignore_glob = ["test_*.py"]  # memory is measured through /proc


def pytest_collection_modifyitems(items):
    """Another process on the same cores makes a stream wait, so a missed bound of time gets two more tries; no other failure
    does."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=2, only_rerun="^TooSlow:"))


@pytest.fixture(scope="module")
def server():
    """`octavo serve` with SmolLM2-135M and short steps, one per test file."""
    with attack_kit.real() as running:
        yield running


@pytest.fixture(scope="module")
def fake_server():
    """The real server with a fake engine, one per test file."""
    with attack_kit.fake(step_ms=5) as running:
        yield running
