"""Work on text that does not end. The fake server's --stick-word keeps a text worker, without looking at its stop token."""

import contextlib
import signal
import time

import pytest
from attack_kit import TooSlow, fake, request_bytes

WORD = "STICK"
STUCK = request_bytes("POST", "/v1/completions", {"prompt": WORD, "max_tokens": 1})


@contextlib.contextmanager
def stuck(server, count: int = 1):
    """Connections whose requests keep a text worker each."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(server.wire()).send(STUCK) for _ in range(count)]


@contextlib.contextmanager
def within(seconds: float):
    began = time.monotonic()
    yield
    if (took := time.monotonic() - began) > seconds:
        raise TooSlow(f"took {took:.2f} s, allowed {seconds}")


def sticky(**flags):
    return fake(**{"stick_word": WORD, "stick_ms": 8000} | flags)


def test_long_jobs_leave_workers_for_other_requests():
    """Two workers, four long jobs."""
    with sticky() as server, stuck(server, 4):
        time.sleep(0.1)
        with within(2):
            assert server.complete(max_tokens=1).status == 200
        for _ in range(5):
            with within(0.5):
                assert server.complete(max_tokens=1).status == 200


def test_preparation_has_a_time_limit():
    with sticky(preparation_timeout=300) as server, stuck(server) as (wire,):
        with within(1.5):
            answer = wire.answer("POST")
        assert answer.status == 503 and int(answer.headers["retry-after"]) >= 1
        assert "took too long to prepare" in answer.error["message"]
        assert server.metric("octavo:refusals_total", 'reason="preparation"') == 1


def test_readyz_and_a_metric_show_a_stuck_worker():
    with sticky(stick_ms=2000, stuck_after=300) as server, stuck(server):
        assert server.ask("GET", "/readyz").status == 200
        assert server.metric("octavo:text_workers_stuck") == 0
        time.sleep(0.6)
        answer = server.ask("GET", "/readyz")
        assert answer.status == 503 and "text worker" in answer.error["message"]
        assert server.metric("octavo:text_workers_stuck") == 1
        assert server.ask("GET", "/livez").status == 200
        time.sleep(2)
        assert server.ask("GET", "/readyz").status == 200
        assert server.metric("octavo:text_workers_stuck") == 0


def test_a_client_that_leaves_gives_up_its_place():
    with sticky(max_open_requests=1) as server:
        with stuck(server):
            time.sleep(0.2)
            assert server.complete(max_tokens=1).status == 429
        end = time.monotonic() + 1
        while server.complete(max_tokens=1).status != 200:
            if time.monotonic() > end:
                raise TooSlow("the place of a client that left was not free after 1 s")


@pytest.mark.parametrize("leaves", [False, True])
def test_sigterm_ends_a_server_with_a_stuck_worker(leaves):
    """The drain timeout, 0.5 s for last error events, and 1 s for the worker."""
    with sticky(stick_ms=60_000, drain_timeout=300) as server:
        with stuck(server) as (wire,):
            time.sleep(0.2)
            if leaves:
                wire.close()
                time.sleep(0.1)
            server.terminate()
            with within(3):
                assert server.process.wait(20) == 0


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(second):
    with sticky(stick_ms=60_000) as server, stuck(server):
        time.sleep(0.2)
        server.terminate()
        time.sleep(0.2)
        assert server.process.poll() is None, "open requests have 30 s"
        server.process.send_signal(second)
        with within(1):
            assert server.process.wait(20) == 1
