"""A short run of tests/battery/kv_indexer.py: Dynamo's indexer predicts the hits of two servers."""

import dynamo_indexer
import kv_indexer
import pytest
from prefix_replay import make_long_context


def test_dynamo_predicts_every_hit(octavo, tmp_path):
    if dynamo_indexer.python() is None:
        pytest.skip("Dynamo's indexer cannot be installed")
    model = make_long_context(tmp_path / "model", "llama", context=2048)
    figures = kv_indexer.run(octavo, model, servers=2, requests=200, checks=30, log=tmp_path / "indexer.log")
    for part in (figures["compared"], figures["after_restart"]):
        assert part["wrong"] == [] and part["with_hits"] >= 3, figures
    assert figures["events_dropped_by_the_relay"] > 0, figures
