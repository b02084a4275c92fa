"""Short runs of the machine faults in tests/battery."""

import contextlib
import sys

import fault_clock
import fault_cores
import fault_descriptors
import fault_full_disk
import fault_memory
import fault_stopped
import fault_truncated_model
import pytest
from fault_kit import CannotMount

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the faults are made with Linux's means")


@contextlib.contextmanager
def or_skip():
    try:
        yield
    except CannotMount as reason:
        pytest.skip(str(reason))


def test_a_full_disk_changes_no_answer(octavo, tmp_path):
    with or_skip():
        result = fault_full_disk.disk_tier(octavo, tmp_path, [4096, 30_000])
    assert result["with_failed_writes"] > 0


def test_a_pull_to_a_full_disk_goes_on_later(octavo, tmp_path):
    with or_skip():
        result = fault_full_disk.pull(octavo, tmp_path, [0.05, 0.3])
    assert result["refused"] == 2


def test_a_full_disk_refuses_uploads_only(tmp_path):
    with or_skip():
        result = fault_full_disk.state(tmp_path, [300_000, 600_000])
    assert result["full"] > 0


def test_a_lower_memory_limit_kills_nothing(octavo, smollm2_gguf, tmp_path):
    with or_skip():
        assert fault_memory.run(octavo, smollm2_gguf, tmp_path, seconds=3)["rounds"] > 1


def test_no_free_descriptor_ends_no_stream():
    assert fault_descriptors.run(4)["statuses"]


def test_a_clock_that_jumps_is_not_noticed(tmp_path):
    if not (preload := fault_clock.library()):
        pytest.skip("libfaketime is not installed")
    fault_clock.run(tmp_path, 6, preload)


def test_a_model_file_that_is_cut_while_it_is_loaded_is_an_error(octavo, smollm2_gguf, tmp_path):
    result = fault_truncated_model.while_loading(octavo, smollm2_gguf, tmp_path, [0, 0.1])
    assert result["refused"] > 0


def test_a_loaded_model_needs_no_file(octavo, smollm2_gguf, tmp_path):
    fault_truncated_model.while_serving(octavo, smollm2_gguf, tmp_path)


def test_cores_that_leave_change_no_bit(octavo, smollm2_gguf):
    assert fault_cores.run(octavo, smollm2_gguf, seconds=3)["moves"] > 10


def test_a_stopped_server_goes_on():
    fault_stopped.run(2)
