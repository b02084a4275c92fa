"""Every request of bad_requests.py during a running stream: it gets the expected status, never a 5xx, and the stream's bytes
do not change."""

import pytest
from bad_requests import CASES
from server_kit import Canary, Server


@pytest.fixture(scope="module")
def server():
    with Server.start(step_ms=1, max_num_seqs=8, pages=512) as running:
        yield running


@pytest.fixture(scope="module")
def canary(server):
    canary = Canary(server)
    yield canary
    canary.finish()
    server.wait_for_baseline()
    assert server.ask("GET", "/livez").status == 200
    assert server.ask("GET", "/load").json() == {"server_load": 0}
    assert server.process.poll() is None


def test_names_are_unique():
    assert len({case.name for case in CASES}) == len(CASES) >= 150


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_request(case, server, canary):
    status = case.send(server)
    assert status in case.wanted
    assert status < 500
    assert not canary.wrong
