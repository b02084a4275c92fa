"""Output is bit-identical regardless of load, for every family and through the whole engine.

To run more trials on real shapes:
    build/release/tests/needle MODEL --trials 200 --neighbours 31 --pool-sequences 6
"""

import json
import subprocess

import pytest
from families import CASES


def needle(build_dir, model, *flags):
    done = subprocess.run([build_dir / "tests" / "needle", model, *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["mismatches"] == 0
    return answer


@pytest.mark.parametrize("name", CASES)
def test_a_needle_of_every_family(build_dir, make_model, name):
    case = CASES[name]
    model = make_model(case.family, **case.recipe)
    needle(build_dir, model, "--dtype", "bfloat16", "--trials", "2", "--tokens", "24", "--neighbours", "12")


@pytest.mark.parametrize("family", ["qwen3.5", "lfm2"])
def test_32_sequences_on_a_pool_for_6(build_dir, make_model, family):
    """Layers with a recurrent state: preempted sequences resume at snapshots and give the same bits."""
    pressed = needle(build_dir, make_model(family, dtype="bfloat16"), "--trials", "12", "--neighbours", "31",
                     "--pool-sequences", "6", "--tokens", "300", "--longest", "100", "--seed", "3")
    assert pressed["preemptions"] > 0 and pressed["needles_with_prefix_hit"] > 0


def test_the_next_turn_goes_on_from_a_snapshot(octavo, make_model):
    """The second prompt starts with the first one, so it resumes from a snapshot near the end of the first."""
    model = make_model("qwen3.5", dtype="bfloat16")
    first = list(range(20, 320))
    lines = [{"prompt_token_ids": first}, {"prompt_token_ids": first + list(range(40, 60))}]
    text = "".join(json.dumps(line | {"max_tokens": 2, "ignore_eos": True}) + "\n" for line in lines)
    done = subprocess.run([octavo, "generate", model, "--prompts", "-", "--max-num-seqs", "1"], input=text,
                          capture_output=True, text=True, check=True)
    answers = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda answer: answer["index"])
    cached = [answer["usage"]["prompt_tokens_details"]["cached_tokens"] for answer in answers]
    assert cached[0] == 0
    assert 256 <= cached[1] < 300
