"""Unit tests of bench/race/peers.py: medians, ratios, the table, the generated part of the document, and what it may contain."""

import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
sys.path.insert(0, str(REPO / "bench" / "race"))

from peerkit import report  # noqa: E402
from peerkit.engines import Octavo, Settings, shell  # noqa: E402
from peerkit.environment import shown  # noqa: E402

SETTINGS = {"batch_sizes": [1, 8], "prefill_len": 512, "context": 128, "output_len": 32}


def race(**engines: list) -> dict:
    """race(octavo=[1.0, 2.0]) has two rounds; each value is the rate of "decode 1", or None if the engine did not run."""
    names = {"llama": "llama.cpp", "openvino": "OpenVINO GenAI", "mlx_lm": "mlx-lm"}
    rounds = [{names.get(engine, engine): {"decode 1": values[i]} for engine, values in engines.items() if values[i] is not None}
              for i in range(len(engines["octavo"]))]
    return {"name": "bf16", "title": "A model", "commands": {"octavo": "octavo bench model m"}, "rounds": rounds}


def results(*races: dict) -> dict:
    return {"machine": {"threads": 2, "cores": 4, "isa": "amx"}, "settings": SETTINGS, "races": list(races)}


def test_ratio_is_the_median_of_the_rounds_ratios():
    # The rates differ between rounds, so the ratio of the medians would be 1.5, unlike that of any round.
    swinging = race(octavo=[10.0, 60.0, 30.0], llama=[10.0, 20.0, 30.0])
    assert report.ratio(swinging, "decode 1", "llama.cpp") == 1.0
    assert report.ratio(race(octavo=[10.0, 60.0], llama=[10.0, 20.0]), "decode 1", "llama.cpp") == 2.0


def test_ratio_counts_only_rounds_both_have():
    assert report.ratio(race(octavo=[10.0, 50.0], mlx_lm=[2.0, None]), "decode 1", "mlx-lm") == 5.0
    assert report.ratio(race(octavo=[10.0, 50.0], llama=["crashed: SIGILL", 10.0]), "decode 1", "llama.cpp") == 5.0
    assert report.ratio(race(octavo=["failed"], llama=[1.0]), "decode 1", "llama.cpp") is None
    assert report.ratio(race(octavo=[1.0], llama=[1.0]), "prefill", "llama.cpp") is None


@pytest.mark.parametrize("found, wanted", [
    ([3.0, 1.0, 2.0], 2.0),
    ([3.0, "failed", 1.0], 2.0),
    ([None, "crashed: SIGSEGV", "failed"], "crashed: SIGSEGV"),
    ([None, None], None),
])
def test_middle(found, wanted):
    assert report.middle(found) == wanted


def test_a_crash_is_a_row_that_says_so():
    table = report.rows(race(octavo=[12.0], llama=["crashed: SIGSEGV"]), SETTINGS)
    assert table[0] == ["tok/s", "octavo", "llama.cpp", "/ llama.cpp"]
    assert table[1] == ["decode, B=1", "12.0", "crashed: SIGSEGV", "-"]
    assert [row[0] for row in table[1:]] == ["decode, B=1", "decode, B=8", "prefill, 512 tokens"]


def test_a_race_with_fewer_batch_sizes_has_fewer_rows():
    table = report.rows(race(octavo=[12.0], llama=[6.0]) | {"batch_sizes": [1]}, SETTINGS)
    assert [row[0] for row in table[1:]] == ["decode, B=1", "prefill, 512 tokens"]


def test_limit_and_our_share_of_it():
    table = report.rows(race(octavo=[15.0, 16.0, 8.0], limit=[20.0, 20.0, 10.0], llama=[5.0, 8.0, 4.0]), SETTINGS)
    assert table[0] == ["tok/s", "octavo", "llama.cpp", "limit", "of limit", "/ llama.cpp"]
    assert table[1][1:] == ["15.0", "5.00", "20.0", "80%", "2.00x"]


@pytest.mark.parametrize("value, text", [(1234.5, "1,234"), (99.94, "99.9"), (2.345, "2.35"), (None, "-"), ("failed", "failed")])
def test_show_rate(value, text):
    assert report.show_rate(value) == text


def test_markdown_is_aligned():
    lines = report.markdown([["a", "bb"], ["ccc", "d"]]).splitlines()
    assert lines == ["| a   | bb |", "|-----|---:|", "| ccc |  d |"]


def test_section_replaces_what_stands_between_the_markers_and_nothing_else():
    document = f"# Title\n\nbefore\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    once = report.replace_section(document, "new")
    assert once == f"# Title\n\nbefore\n{report.BEGIN}\nnew\n{report.END}\nafter\n"
    assert report.replace_section(once, "new") == once


@pytest.mark.parametrize("document", ["no markers", report.BEGIN, report.END + report.BEGIN, report.BEGIN + report.END + report.END])
def test_a_document_without_both_markers_is_refused(document):
    with pytest.raises(ValueError, match="peers:begin"):
        report.replace_section(document, "new")


def test_section_shows_machine_table_and_commands():
    done = race(octavo=[12.0], llama=[6.0])
    done["rounds"][0]["outside_kernels_percent"] = 3.21
    text = report.section(results(done))
    assert "2 threads on 4 cores, instruction set amx." in text
    assert "| decode, B=1         |   12.0 |      6.00 |       2.00x |" in text
    assert "3.2% of the time" in text
    assert "# octavo\noctavo bench model m\n" in text


def test_commands_show_no_path_of_this_machine():
    command = shell(["/a/b/octavo", "bench", "model", "build/models/q", '{"model": "/x/y/m.gguf", "threads": 2}'])
    assert command == """octavo bench model build/models/q '{"model": "m.gguf", "threads": 2}'"""
    assert shown(REPO / "docs" / "a.md") == "docs/a.md"
    assert shown("/elsewhere/a.md") == "a.md"
    assert str(REPO) not in Settings(2).task(REPO / "build" / "m.gguf")


def test_our_answer_is_read_as_rates():
    answer = {"decode": [{"batch_size": 8, "tokens_per_second": 40.0, "limit_ms": 100.0}],
              "prefill": {"tokens": 512, "tokens_per_second": 900.0}}
    assert Octavo.rates(answer) == {"decode 8": 40.0, "prefill": 900.0}
    assert Octavo.limit_rates(answer) == {"decode 8": 80.0}
