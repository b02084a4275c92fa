"""Pages made from the code are up to date: fields of requests, figures of /metrics. The command line's is in test_flags.py."""

import sys
import urllib.request
from pathlib import Path

import fields_table
import metrics_table
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

import running_server  # noqa: E402


@pytest.fixture(scope="module")
def get(octavo, smollm2_gguf, tmp_path_factory):
    flags = ("--kv-memory", "256MiB", "--prefix-disk", tmp_path_factory.mktemp("disk"))
    with running_server.running(octavo, smollm2_gguf, *flags) as server:
        yield lambda path: urllib.request.urlopen(server.url + path).read().decode()


def test_the_page_of_fields_is_the_code(get):
    import json

    assert fields_table.PAGE.read_text() == fields_table.page(json.loads(get("/openapi.json"))), \
        "docs/api-fields.md is out of date: tools/fields_table.py URL writes it anew"


def test_the_page_of_metrics_is_the_code(get):
    text = metrics_table.PAGE.read_text()
    # A route that was asked, a refusal: figures that are only there once something happened.
    pytest.raises(urllib.error.HTTPError, get, "/no-such-path")
    assert text == metrics_table.page(text, get("/metrics")), "docs/metrics.md is out of date: tools/metrics_table.py URL"
