"""The kit itself: each bound fails when it is exceeded."""

import subprocess
import sys
from pathlib import Path

import pytest
from attack_kit import MB, AttackedServer, TooSlow, bounded, planned_bytes, post, raw


@pytest.fixture(scope="module")
def victim():
    process = subprocess.Popen([sys.executable, str(Path(__file__).with_name("stub_victim.py"))], stdout=subprocess.PIPE, text=True)
    yield AttackedServer(port=int(process.stdout.readline()), process=process, plan_bytes=2000 * MB)
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_harmless_request_is_within_all_bounds(victim):
    with bounded(victim) as stream:
        assert post(victim, "/", {"a": 1}) == (200, {})
    assert stream.tokens >= 5 and 0.01 < stream.longest_gap < 1
    assert victim.alive()
    assert raw(victim, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_time_is_bounded(victim):
    with pytest.raises(TooSlow, match="took 0"), bounded(victim, seconds=0.2):
        post(victim, "/", {"sleep": 0.4})
    with pytest.raises(TooSlow, match="no response"):
        post(victim, "/", {"sleep": 1}, timeout=0.2)


def test_gaps_are_bounded(victim):
    """Also a gap that ends after the attack."""
    with pytest.raises(TooSlow, match="the neighbour waited"), bounded(victim, gap_ms=400):
        post(victim, "/", {"stop": 0.8})


def test_memory_is_bounded(victim):
    with pytest.raises(AssertionError, match="memory grew by") as failure, bounded(victim, seconds=20, growth_mb=50, gap_ms=5000):
        post(victim, "/", {"hog_mb": 100})
    assert not isinstance(failure.value, TooSlow)
    victim.plan_bytes = victim.rss() + 50 * MB
    with pytest.raises(AssertionError, match="resident, planned"), bounded(victim, seconds=20, gap_ms=5000):
        post(victim, "/", {"hog_mb": 100})


def test_the_plan_is_the_sum_of_its_rows():
    lines = ["octavo 1\n", "  model       x: llama, 2 B\n", "  machine                 15.6 GiB  memory, or the cgroup's limit\n",
             "  budget                  14.0 GiB  --memory-fraction of it\n", "  weights                 93.8 MiB  \n",
             "  draft model             10.0 KiB  weights, pages and steps\n", "  pages                   1.50 GiB  9 pages, context 8\n",
             "  left                    3.00 GiB  \n", "  listening   http://127.0.0.1:1 (ready in 1.0 s)\n"]
    assert planned_bytes(lines) == int(93.8 * 2**20 + 10 * 2**10 + 1.5 * 2**30)
