"""Short runs of the load tests in tests/battery."""

import os

import disconnects
import overload
import pytest
import sigterm
from server_kit import Server


# A machine that stands still for 40 ms counts as two more steps; a server that keeps pages fails every time.
@pytest.mark.flaky(reruns=2)
def test_pages_come_home_from_cut_connections():
    # A sanitized server needs several times as long to notice a closed connection, so its steps are longer, too.
    with Server.start(step_ms=50 if "OCTAVO_FAKE_SERVER" in os.environ else 20) as server:
        figures = disconnects.run(server, 60, seed=1)
    assert figures["while_running"] > 10
    # Two steps, one that was queued when the connection was closed, and one during polling.
    assert figures["most_steps_until_free"] <= 4, figures


def test_no_stream_is_cut_inside_the_drain_window():
    for _ in range(3):
        assert sigterm.inside_the_window()["left_after_streams_s"] < 1


def test_streams_past_the_drain_window_are_told():
    for _ in range(3):
        sigterm.past_the_window()


def test_a_second_signal_ends_at_once():
    sigterm.twice()


def test_ten_times_too_much_loses_nothing():
    with Server.start(step_ms=10, max_num_seqs=8, max_open_requests=16, pages=1024) as server:
        figures = overload.run(server, seconds=5, connections=200, slow=20, seats=8, peak_seconds=2)
    assert figures["lost"] == 0, figures
    assert figures["open_after"] == 0 and figures["done"] > 20 and figures["refused"] > 20, figures
