"""bench/several_machines_cost.py: the tables of docs/several-machines.md are its output, and its formulas give the numbers of
src/cli/distributed/pipeline_cost_test.cpp and tensor_cost_test.cpp."""

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
sys.path.insert(0, str(REPO / "bench"))

import several_machines_cost as cost  # noqa: E402



class Weights(cost.Shape):
    """32 layers of 100 MB and an output matrix of 400 MB, as in pipeline_cost_test.cpp."""

    layer_bytes = 100e6
    head_bytes = 400e6


def shape() -> Weights:
    return Weights("test", 32, 4096, 1, 1, 4096, 14336, 100_000, 0)


MACHINE = cost.Machine(40e9, 1e12)
GIGABIT = cost.Link(125e6, 200e-6)


def test_the_page_has_the_tables():
    done = subprocess.run([sys.executable, REPO / "bench" / "several_machines_cost.py"], capture_output=True, text=True, check=True)
    page = (REPO / "docs" / "several-machines.md").read_text()
    lines = [line for line in done.stdout.splitlines() if line]
    assert len(lines) > 15
    assert [line for line in lines if line not in page] == [], "run bench/several_machines_cost.py and replace the tables"


def test_layers_are_divided_as_in_the_program():
    assert cost.divide(30, 4) == [8, 7, 8, 7]
    assert cost.divide(32, 2) == [16, 16]
    assert cost.divide(4, 4) == [1, 1, 1, 1]


def test_rates_are_those_of_the_program():
    assert cost.decode_rate(shape(), MACHINE, 1, GIGABIT, 1) == pytest.approx(40e9 / 3.6e9)
    assert 1 / cost.decode_rate(shape(), MACHINE, 2, GIGABIT, 1) == pytest.approx(0.090 + 265.536e-6)
    assert cost.decode_rate(shape(), MACHINE, 2, GIGABIT, 16) == pytest.approx(8 / 0.050)
    assert cost.decode_rate(shape(), MACHINE, 2, cost.Link(1e6, 0), 64) == pytest.approx(1e6 / 8192)


def test_rates_of_divided_matrices_are_those_of_the_program():
    fast = cost.Link(5e9, 20e-6)
    assert shape().gathered == 32 * 26624
    row, logits = 3 / 4 * 32 * 26624 * 2, 3 / 4 * 100_000 * 4
    assert cost.tensor_step(shape(), MACHINE, 4, fast, 1) == pytest.approx(0.0225 + 130 * 10e-6 + (row + logits) / 5e9)
    assert cost.tensor_step(shape(), MACHINE, 4, fast, 16) == pytest.approx(0.0225 + 130 * 10e-6 + 16 * (row + logits) / 5e9)
    assert cost.tensor_step(shape(), MACHINE, 1, fast, 16) == pytest.approx(3.6e9 / 40e9)
