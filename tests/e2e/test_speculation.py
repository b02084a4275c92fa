"""Speculative decoding changes when tokens are generated, but none of their bits.

Longer runs (docs/testing.md has the results):
    build/release/tests/speculation "$(.venv/bin/python tools/smollm2_path.py)" --trials 300
    build/release/tests/speculation_speed "$(.venv/bin/python tools/smollm2_path.py)"
"""

import json
import subprocess

import pytest
from slow_tests import SLOW, repeats


@pytest.fixture
def speculate(build_dir):
    def speculate(model, *arguments):
        done = subprocess.run([build_dir / "tests" / "speculation", model, *map(str, arguments)],
                              capture_output=True, text=True)
        assert done.stdout, done.stderr
        found = json.loads(done.stdout)
        assert done.returncode == 0 and found["different"] == 0, found
        assert found["accepted_tokens"] > 0
        return found

    return speculate


@pytest.mark.skipif(not SLOW, reason="a minute and more; OCTAVO_SLOW_TESTS=1 runs it")
def test_prompt_lookup_on_a_real_model(speculate, smollm2_gguf):
    found = speculate(smollm2_gguf, "--trials", 16, "--tokens", 24)
    assert found["steps_with"] < found["steps_without"]
    assert found["accepted_under_grammar"] > 0


@pytest.mark.parametrize("family, fields", [
    ("qwen3", {"dtype": "bfloat16"}),
    ("mistral", {"window": 24}),
    ("qwen3", {"format": "mlx", "bits": 4, "group_size": 32}),
    ("qwen3.5-text", {"dtype": "bfloat16"}),
    ("qwen3-next", {"dtype": "bfloat16"}),
    ("lfm2", {"dtype": "bfloat16"}),
    ("granitemoehybrid-dense", {"dtype": "bfloat16"}),
])
def test_prompt_lookup_on_tiny_models(speculate, make_model, family, fields):
    speculate(make_model(family, **fields), "--trials", repeats(8, 16), "--tokens", 48)


def test_few_pages_and_chunked_prefill_change_nothing(speculate, make_model):
    speculate(make_model("qwen3.5-text", dtype="bfloat16"), "--tight", "--trials", repeats(4, 16), "--tokens", 40)


def test_a_model_as_its_own_draft_is_always_right(speculate, make_model):
    model = make_model("qwen3", dtype="bfloat16")
    found = speculate(model, "--draft", model, "--trials", 16, "--tokens", 32)
    free = found["accepted_tokens"] - found["accepted_under_grammar"]
    assert free > 0.5 * found["draft_tokens"]  # the draft ignores penalties and grammars


def test_a_draft_model_that_knows_nothing_changes_nothing(build_dir, make_model):
    model, draft = make_model("qwen3", dtype="bfloat16"), make_model("qwen3", dtype="bfloat16", seed=7)
    done = subprocess.run([build_dir / "tests" / "speculation", model, "--draft", draft, "--trials", "8"],
                          capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["different"] == 0 and found["drafts"] > 0


def refusal(octavo, model, config):
    done = subprocess.run([octavo, "generate", model, "--raw", "--prompt", "a", "--max-tokens", "2", "--speculative-config",
                           config], capture_output=True, text=True)
    assert done.returncode != 0
    return done.stderr


def test_what_cannot_be_had_is_refused(octavo, make_model):
    hybrid = make_model("qwen3.5-text")
    assert "recurrent layers" in refusal(octavo, hybrid, json.dumps({"model": str(hybrid)}))
    assert "is not supported" in refusal(octavo, make_model("qwen3"), '{"method": "eagle"}')
