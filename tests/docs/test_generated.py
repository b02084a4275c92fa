"""Checks that generated pages are up to date: request fields, metrics and the Python package. test_flags.py checks the command-line reference."""

import json
import sys
import urllib.request
from pathlib import Path

import fields_table
import metrics_table
import pytest
import python_reference

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

import running_server  # noqa: E402


@pytest.fixture(scope="module")
def url(octavo, smollm2_gguf, tmp_path_factory):
    flags = ("--kv-memory", "256MiB", "--prefix-disk", tmp_path_factory.mktemp("disk"))
    with running_server.running(octavo, smollm2_gguf, *flags) as server:
        yield server.url


def test_the_field_reference_matches_the_server(url):
    with urllib.request.urlopen(url + "/openapi.json") as answer:
        assert fields_table.PAGE.read_text() == fields_table.page(json.load(answer)), \
            "docs/api-fields.md is out of date: run tools/fields_table.py URL"


def test_the_python_reference_matches_the_package():
    assert python_reference.PAGE.read_text() == python_reference.page(), \
        "docs/python-reference.md is out of date: run tools/python_reference.py"


def test_the_metrics_table_matches_the_server(url):
    text = metrics_table.PAGE.read_text()
    assert text == metrics_table.page(text, metrics_table.fetch(url)), \
        "docs/metrics.md is out of date: run tools/metrics_table.py URL"
