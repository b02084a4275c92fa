"""Ranks that end or hang while answers stream, of models divided by layers and by matrices: every open request gets an error within 10 s that
names the rank, all processes exit with a status other than 0, and no port stays bound. tests/battery/pipeline_kills.py does the same at random
moments."""

import signal
import time

import pytest
from cluster_kit import LIMIT, Cluster, Setup, Streams, disturb
from network_places import Namespaces, NotPermitted

FLAGS = ("--max-model-len", 1024, "--kv-memory", "256MiB")


@pytest.fixture(params=["pipeline", "tensor"])
def start(request, octavo, smollm2_gguf, tmp_path):
    def start(ranks: int = 3, **fields) -> Cluster:  # the model has 3 KV heads
        return Cluster(octavo, smollm2_gguf, ranks, tmp_path, Setup(flags=FLAGS, divides=request.param, **fields))

    return start


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_rank_that_ends_or_hangs_ends_all(start, rank, number):
    with start() as cluster:
        outcome = disturb(cluster, rank, number)
        assert outcome.ok, (outcome.problems, cluster.logs())


@pytest.mark.parametrize("rank", [1, 2])
def test_an_idle_cluster_notices_it_too(start, rank):
    with start() as cluster:
        cluster.processes[rank].kill()
        codes = cluster.exit_codes(LIMIT)
        assert None not in codes and 0 not in codes, cluster.logs()
        assert f"rank {rank}" in cluster.log(0).read_text()


def test_a_short_pause_is_survived(start):
    with start(timeout=5) as cluster:
        running = Streams(cluster, 2, tokens=60)
        running.wait_until_started()
        cluster.processes[1].send_signal(signal.SIGSTOP)
        time.sleep(1)
        cluster.processes[1].send_signal(signal.SIGCONT)
        assert running.finish(60)
        assert running.errors() == ["", ""], cluster.logs()
        assert all(b"[DONE]" in body for body in running.bodies)
        assert cluster.stop() == [0, 0, 0]


def test_a_drain_answers_open_requests_first(start):
    with start() as cluster:
        running = Streams(cluster, 3, tokens=40)
        running.wait_until_started()
        assert cluster.stop() == [0, 0, 0], cluster.logs()
        assert running.finish(1) and all(b"[DONE]" in body for body in running.bodies)
        assert running.errors() == ["", "", ""]


def test_a_second_signal_ends_rank_0_at_once_and_the_workers_follow(start):
    with start() as cluster:
        Streams(cluster, 2).wait_until_started()
        cluster.processes[0].send_signal(signal.SIGTERM)
        time.sleep(0.2)
        cluster.processes[0].send_signal(signal.SIGTERM)
        codes = cluster.exit_codes(LIMIT)
        assert None not in codes and codes[0] != 0, cluster.logs()


def test_a_worker_waits_for_rank_0_and_gives_up_in_the_end(start, octavo, smollm2_gguf):
    cluster = start(2, worker_flags=("--connect-timeout", "1"))
    cluster.control = "127.0.0.1:9"
    cluster.start_worker(1)
    try:
        assert cluster.processes[0].wait(20) == 1
        assert "127.0.0.1:9" in cluster.log(1).read_text()
    finally:
        cluster.kill()


def test_a_cable_that_is_pulled(start):
    """No packet tells the ranks that the connection is gone."""
    try:
        with Namespaces(3) as place, start(place=place) as cluster:
            running = Streams(cluster, 3)
            running.wait_until_started()
            place.run(1, "ip", "link", "set", "eth0", "down")
            assert running.finish(LIMIT), cluster.logs()
            assert all("rank" in error for error in running.errors()), running.errors()
            codes = cluster.exit_codes(LIMIT)
            assert None not in codes and 0 not in codes, cluster.logs()
    except NotPermitted as reason:
        pytest.skip(str(reason))
