"""Every matrix of a model divided over the processes of a cluster: the logits of each token have the bits of one machine. They are compared by
hash, for greedy and sampled answers in chunks and batches."""

import json
import subprocess

import pytest

FOUR_HEADS = {"overrides": (("num_key_value_heads", 4),)}
# Each kind of mixer and of feed-forward. Neither heads nor strips of outputs divide evenly by all sizes.
MODELS = {
    "llama": {}, "smollm2": {}, "qwen3.5": {}, "deepseek_v3": {}, "gpt_oss": FOUR_HEADS, "qwen3_moe": FOUR_HEADS, "gemma3-text": FOUR_HEADS,
    "gemma4-text": FOUR_HEADS, "nemotron_h": {}, "lfm2": FOUR_HEADS, "olmo2": {}, "phi3": {},
}


def run(build_dir, model, *flags):
    command = [build_dir / "tests" / "cluster_trials", model, "--tensor", *map(str, flags)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("family", MODELS)
def test_two_ranks(build_dir, make_model, family):
    assert run(build_dir, make_model(family, dtype="bfloat16", **MODELS[family]))["different"] == 0


@pytest.mark.parametrize("family, ranks", [("smollm2", 3), ("deepseek_v3", 3), ("gpt_oss", 4), ("gemma4-text", 3), ("gemma2", 4)])
def test_more_ranks(build_dir, make_model, family, ranks):
    model = make_model(family, dtype="bfloat16", **MODELS.get(family, {}))
    assert run(build_dir, model, "--ranks", ranks, "--requests", 6)["different"] == 0


@pytest.mark.parametrize("family, flags", [("qwen3", ["--ngram"]), ("gemma2", ["--ranks", 3, "--ngram"]), ("qwen3", ["--kv-dtype", "int8"]),
                                           ("gemma2", ["--kv-dtype", "int8"])])
def test_ranks_with(build_dir, make_model, family, flags):
    assert run(build_dir, make_model(family, dtype="bfloat16"), *flags)["different"] == 0


@pytest.mark.parametrize("family", ["qwen3.5-mtp", "deepseek_v3-mtp"])
def test_ranks_that_predict(build_dir, make_model, family):
    assert run(build_dir, make_model(family, dtype="bfloat16"), "--mtp")["different"] == 0


@pytest.mark.parametrize("recipe", [{"format": "mlx", "bits": 4, "group_size": 32}, {"format": "gguf", "gguf_type": "q4_k"}],
                         ids=["affine", "q4_k"])
def test_quantised_weights(build_dir, make_model, recipe):
    model = make_model("qwen3", shape="tiny-k", **recipe)
    assert run(build_dir, model)["different"] == 0


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_step_fails_on_one_rank(build_dir, make_model, rank):
    model = make_model("gemma2", dtype="bfloat16")
    answer = run(build_dir, model, "--ranks", 3, "--fail-rank", rank)
    assert answer["poisoned_ended_with_error"] and answer["failed_steps"] >= 2
    assert answer["pages_held_at_the_end"] == 0


@pytest.mark.parametrize("rank", [1, 2])
def test_a_rank_is_killed(build_dir, make_model, rank):
    run(build_dir, make_model("gemma2", dtype="bfloat16"), "--ranks", 3, "--kill-rank", rank, "--max-tokens", 400)


@pytest.mark.parametrize("family", ["llama", "gemma2", "qwen3.5"])
def test_the_disk_tier_has_the_pages_of_all_ranks(build_dir, make_model, tmp_path, family):
    answer = run(build_dir, make_model(family, dtype="bfloat16"), "--disk", tmp_path / "pages")
    assert answer["cached_tokens"] > 0


@pytest.mark.parametrize("family", ["smollm2", "qwen3.5", "deepseek_v3", "gpt_oss"])
def test_a_needle_among_neighbours(build_dir, make_model, family):
    """With random chunks, small pools, shared prefixes, constraints and, in some clusters, drafts. How often requests are preempted depends on
    the time they take, so it is not asserted here: test_tensor.py has a test of it."""
    model = make_model(family, dtype="bfloat16", **MODELS[family])
    sizes = "2,3" if family != "qwen3.5" else "2"
    command = [build_dir / "tests" / "needle_ranks", model, "--tensor", "--ranks", sizes, "--trials", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["clusters"] == 3 and found["needles"] == 18 and found["constrained_needles"] > 0 and found["neighbours"] == 216
