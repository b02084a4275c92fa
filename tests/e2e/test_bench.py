"""`octavo bench` measures and reports; the figures are not checked, because CI machines vary."""

import json
import re
import subprocess

import numpy as np
import pytest


@pytest.fixture(scope="module")
def bench(octavo):
    """bench(*arguments) returns the finished process."""

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([octavo, "bench", *arguments], capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture(scope="module")
def linear(bench) -> dict:
    done = bench("kernels", "--quick", "--repeats", "1", "--filter", "linear M=1", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_machine_limits_are_positive_for_every_instruction_set(bench):
    done = bench("machine", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    machine = json.loads(done.stdout)["machine"]
    assert machine["threads"] >= 1 and machine["isa"] in machine["isas"]
    for threads in ("one_thread", "all_threads"):
        rate = machine["memory_bandwidth"][threads]
        assert 0 < rate["median"] <= rate["best"]
        assert all(peak["flops"][threads]["best"] > 0 for peak in machine["peaks"])
    assert machine["l2_bandwidth"]["best"] > 0 and machine["l3_bandwidth"]["best"] > 0
    peaks = {(peak["isa"], peak["dtype"]) for peak in machine["peaks"]}
    assert ("scalar", "float32") in peaks
    for isa in {"amx", "avx512-bf16"} & set(machine["isas"]):
        assert (isa, "bfloat16") in peaks


def test_filter_chooses_cases_by_whole_numbers(linear):
    results = linear["results"]
    assert {result["op"] for result in results} == {"linear"}
    assert all(result["shape"].endswith("M=1") for result in results)
    assert {result["dtype"] for result in results} == {"bfloat16", "affine 4-bit/64", "affine 8-bit/64", "float32"}


def test_figures_of_a_case_agree_with_each_other(linear):
    for result in linear["results"]:
        assert result["isa"] == linear["machine"]["isa"]
        assert result["bytes_per_second"] == pytest.approx(result["bytes"] / result["seconds"])
        assert result["flops_per_second"] == pytest.approx(result["flops"] / result["seconds"])
        parts = result["fraction_of_bandwidth"], result["fraction_of_peak"]
        assert min(parts) > 0 and result["fraction_of_limit"] == pytest.approx(max(parts))
        assert result["bound"] == ("bandwidth" if parts[0] >= parts[1] else "peak")
        assert result["vs_mlx"] > 0


def test_rivals_are_compared_in_bf16(linear):
    bf16 = next(result for result in linear["results"] if result["dtype"] == "bfloat16")
    assert (bf16["vs_onednn"] is not None) <= linear["onednn"]
    assert (bf16["invariance_cost"] is not None) == (linear["machine"]["isa"] == "amx")


def test_quantised_bytes_count_scales(linear):
    by_dtype = {result["dtype"]: result for result in linear["results"]}
    numbers = by_dtype["bfloat16"]["bytes"] / 2
    assert by_dtype["affine 4-bit/64"]["bytes"] == numbers / 2 + numbers / 64 * 4
    assert by_dtype["affine 8-bit/64"]["bytes"] == numbers + numbers / 64 * 4


def test_table_has_a_line_per_case_and_no_rivals_with_no_mlx(bench):
    done = bench("kernels", "--quick", "--repeats", "1", "--filter", "paged_attention", "--no-mlx")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("paged_attention")]
    assert len(lines) == 2 and "decode" in lines[0] and "prefill" in lines[1]
    assert not any(re.search(r"\dx", line.split("bfloat16")[1]) for line in lines)


def test_filter_that_matches_nothing_says_so(bench):
    done = bench("kernels", "--quick", "--filter", "nonesuch")
    assert done.returncode == 1 and "nonesuch" in done.stderr and not done.stdout


def test_costs_are_arrays_that_numpy_reads(bench, make_model, tmp_path):
    model, costs = make_model("llama", shape="tiny"), tmp_path / "costs.npz"
    flags = ("--batch-size", "4,1,4", "--context", "16", "--output-len", "2", "--prefill-len", "0", "--repeats", "1")
    done = bench("model", str(model), *flags, "--costs", str(costs))
    assert done.returncode == 0, done.stderr
    arrays = np.load(costs)
    assert set(arrays.files) == {"prefill_isl", "prefill_ttft_ms", "decode_active_kv_tokens", "decode_context_length", "decode_itl"}
    assert arrays["prefill_isl"].tolist() == [16, 32, 64, 128, 256, 512]
    assert arrays["prefill_ttft_ms"].shape == (6,) and arrays["prefill_ttft_ms"].min() > 0
    assert arrays["decode_itl"].shape == (*arrays["decode_active_kv_tokens"].shape, *arrays["decode_context_length"].shape)
    assert all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays.values())
    for axis in ("decode_active_kv_tokens", "decode_context_length"):
        assert (np.diff(arrays[axis]) > 0).all()


def test_costs_need_two_batch_sizes(bench, make_model, tmp_path):
    done = bench("model", str(make_model("llama", shape="tiny")), "--batch-size", "4", "--costs", str(tmp_path / "costs.npz"))
    assert done.returncode == 1 and "--costs: give at least two different batch sizes with --batch-size" in done.stderr
