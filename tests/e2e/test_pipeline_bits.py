"""A model divided into stages: the same bits as on one machine, for each kind of layer, and from a cluster of processes."""

import json
import subprocess

import pytest

# Each kind of cache and of state between stages; the last one has inputs for every layer and layers that share caches.
FAMILIES = ["llama", "llama-tied", "qwen3.5", "deepseek_v3", "gpt_oss", "gemma3-text", "gemma4-text", "nemotron_h", "lfm2"]


def run(build_dir, program, model, *flags):
    done = subprocess.run([build_dir / "tests" / program, model, *map(str, flags)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_of_stages(build_dir, make_model, family):
    answer = run(build_dir, "stage_trials", make_model(family), "--stages", "2,3,4", "--trials", 2)
    assert answer["mismatches"] == 0
    # With few layers, a stage can be nearly the whole model.
    assert answer["most_stage_weights"] < answer["weights"]


@pytest.mark.parametrize("family", ["qwen3.5-mtp", "deepseek_v3-mtp"])
def test_logits_of_the_prediction_layer(build_dir, make_model, family):
    assert run(build_dir, "stage_trials", make_model(family), "--stages", "2", "--trials", 2, "--mtp")["mismatches"] == 0


@pytest.mark.parametrize("family", ["llama", "qwen3.5", "gemma4-text", "deepseek_v3"])
def test_a_cluster_of_two(build_dir, make_model, family):
    assert run(build_dir, "cluster_trials", make_model(family, dtype="bfloat16"))["different"] == 0


@pytest.mark.parametrize("flags", [["--ranks", 3], ["--ngram"], ["--kv-dtype", "int8"]], ids=lambda flags: flags[0].strip("-"))
def test_a_cluster_with(build_dir, make_model, flags):
    assert run(build_dir, "cluster_trials", make_model("qwen3", dtype="bfloat16"), *flags)["different"] == 0


def test_a_cluster_that_predicts(build_dir, make_model):
    assert run(build_dir, "cluster_trials", make_model("qwen3.5-mtp", dtype="bfloat16"), "--mtp")["different"] == 0


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_step_fails_on_one_rank(build_dir, make_model, rank):
    answer = run(build_dir, "cluster_trials", make_model("llama", dtype="bfloat16"), "--ranks", 3, "--fail-rank", rank)
    assert answer["poisoned_ended_with_error"] and answer["failed_steps"] >= 2
    assert answer["pages_held_at_the_end"] == 0


@pytest.mark.parametrize("rank", [1, 2])
def test_a_rank_is_killed(build_dir, make_model, rank):
    run(build_dir, "cluster_trials", make_model("llama", dtype="bfloat16"), "--ranks", 3, "--kill-rank", rank, "--max-tokens", 400)


@pytest.mark.parametrize("family", ["llama", "qwen3.5"])
def test_the_disk_tier_has_the_pages_of_all_ranks(build_dir, make_model, tmp_path, family):
    answer = run(build_dir, "cluster_trials", make_model(family, dtype="bfloat16"), "--disk", tmp_path / "pages")
    assert answer["cached_tokens"] > 0


def test_a_rank_with_another_model_is_refused(build_dir, make_model):
    """The same shapes and config: only the numbers differ."""
    model, other = make_model("llama", dtype="bfloat16"), make_model("llama", dtype="bfloat16", seed=5)
    done = subprocess.run([build_dir / "tests" / "cluster_trials", model, "--worker-model", other], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 2
    assert "rank 0 has other files of this model" in done.stderr


@pytest.mark.parametrize("family", ["llama", "qwen3.5", "deepseek_v3", "gpt_oss"])
def test_a_needle_among_neighbours(build_dir, make_model, family):
    """With random chunks, small pools, shared prefixes, constraints and, in some clusters, drafts. How often requests are preempted depends on
    the time they take, so it is not asserted here: test_pipeline.py has a test of it."""
    found = run(build_dir, "needle_ranks", make_model(family, dtype="bfloat16"), "--ranks", "2,3,4", "--trials", 3)
    assert found["clusters"] == 3 and found["needles"] == 18 and found["constrained_needles"] > 0 and found["neighbours"] == 216
