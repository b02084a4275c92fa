"""Short runs of the battery's fleet tests: streams that survive their replicas, and many open streams."""

import fleet_resume
import open_streams


def test_streams_continue_on_other_replicas_byte_for_byte(octavo, smollm2_gguf, tmp_path):
    isas = [*sorted(fleet_resume.known_sets() - {"scalar"})[:2], "scalar"][:2]  # different ones if there are two
    figures = fleet_resume.run(octavo, smollm2_gguf, streams=16, together=8, isas=isas, seed=1, logs=tmp_path, pause=(0.8, 1.5))
    assert figures["kills"] > 0 and figures["failed"] == 0 and figures["different"] == 0, figures


def test_no_open_stream_is_lost():
    figures = open_streams.run(400, servers=2, seconds=4, step_ms=250)
    assert figures["streams"] == 400 and figures["lost"] == 0, figures
    assert figures["kib_per_stream"] < 100, figures
