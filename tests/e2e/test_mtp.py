"""The multi-token prediction layer: its logits, and that drafting with it changes no bit.

The models have random weights, so how often its drafts are right, and how fast that is, cannot be judged here."""

import json
import shutil
import subprocess

import mlx.core as mx
import numpy as np
import pytest
from modelkit import mtp_oracle

FAMILIES = ["qwen3.5-mtp", "deepseek_v3-mtp", "glm4_moe"]
PROMPTS = [[int(i) for i in np.random.default_rng(n).integers(3, 500, n)] for n in (2, 64, 65, 150)]


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_equal_the_oracle(dump_logits, make_model, family):
    model = make_model(family)
    whole = dump_logits(model, PROMPTS, mtp=True).logits
    for found, expected in zip(whole, mtp_oracle.folder_logits(model, PROMPTS)):
        assert np.abs(found[:-1] - expected).max() < 2e-4
    in_chunks = dump_logits(model, PROMPTS, mtp=True, chunk=7, batch=True).logits
    for found, expected in zip(in_chunks, whole):
        assert np.array_equal(found[:-1], expected[:-1])


def speculate(build_dir, model, *arguments):
    done = subprocess.run([build_dir / "tests" / "speculation", model, "--mtp", *map(str, arguments)],
                          capture_output=True, text=True)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["different"] == 0 and found["drafts"] > 0, found
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_drafts_of_the_layer_change_no_bit(build_dir, make_model, family):
    speculate(build_dir, make_model(family, dtype="bfloat16"), "--tight", "--trials", 4)


def bigram_model(folder, to):
    """A copy whose layers add nothing to the residual, so that the next token follows from the newest one alone, and whose
    prediction layer continues with that rule."""
    shutil.copytree(folder, to)
    for path in to.glob("model*.safetensors"):
        weights = mx.load(str(path))
        for name, value in weights.items():
            if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight", "pre_fc_norm_embedding.weight")):
                weights[name] = mx.zeros_like(value)
        weights["mtp.norm.weight"] = weights["model.norm.weight"]
        hidden = weights["mtp.fc.weight"].shape[0]
        weights["mtp.fc.weight"] = mx.eye(hidden, 2 * hidden).astype(weights["mtp.fc.weight"].dtype)
        mx.save_safetensors(str(path), weights, {"format": "pt"})
    return to


def test_right_drafts_are_accepted(build_dir, make_model, tmp_path):
    model = bigram_model(make_model("qwen3.5-mtp", dtype="bfloat16"), tmp_path / "bigrams")
    found = speculate(build_dir, model, "--trials", 16)
    free = found["accepted_tokens"] - found["accepted_under_grammar"]
    assert free > 0.4 * found["draft_tokens"]  # the layer ignores penalties and grammars
    assert found["steps_with"] < found["steps_without"]


def test_a_model_without_the_layer_is_refused(octavo, make_model):
    done = subprocess.run([octavo, "generate", make_model("qwen3"), "--raw", "--prompt", "a", "--max-tokens", "2",
                           "--speculative-config", '{"method": "mtp"}'], capture_output=True, text=True)
    assert done.returncode != 0 and "no multi-token prediction layer" in done.stderr
