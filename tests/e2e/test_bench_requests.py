"""`octavo bench throughput` and `octavo bench lengths`: checks what they count, not how fast they are."""

import json
import random
import subprocess

import pytest


@pytest.fixture(scope="module")
def bench(octavo):
    def run(*arguments) -> subprocess.CompletedProcess:
        command = [str(a) for a in (octavo, "bench", *arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture(scope="module")
def tiny(make_model):
    return make_model("llama")


def test_throughput_counts_every_token_of_a_dataset(bench, tiny, tmp_path):
    requests = [{"prompt_tokens": 5 + 7 * i, "output_tokens": 1 + i % 4} for i in range(12)]
    (tmp_path / "mix.json").write_text(json.dumps({"about": "a mix", "requests": requests}))
    done = bench("throughput", tiny, "--dataset", tmp_path / "mix.json", "--max-num-seqs", "4", "--json",
                 "--max-num-batched-tokens", "32", "--bandwidth", "20", "--peak", "2")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    prompt = sum(request["prompt_tokens"] for request in requests)
    output = sum(request["output_tokens"] for request in requests)
    assert (result["requests"], result["prompt_tokens"], result["output_tokens"]) == (12, prompt, output)
    assert result["total_tokens"] == prompt + output
    assert result["output_tokens_per_second"] == pytest.approx(output / result["seconds"])
    # Random prompts share no prefix, so the engine and the replay compute every row once.
    rows = prompt + output - len(requests)
    assert result["prefix_hit_tokens"] == result["preemptions"] == 0
    assert result["steps"] * result["rows_per_step"] == pytest.approx(rows)
    assert result["mix"]["rows"] == rows
    assert result["mix"]["limit_fraction"] == pytest.approx(result["mix"]["limit_seconds"] / result["seconds"])
    assert 0 < result["ttft_ms"]["mean"] <= result["ttft_ms"]["p99"]
    assert 0 < result["step_ms"]["kernels"] < result["step_ms"]["all"]
    assert 0 < result["peak_resident_bytes"] and 0 < result["plan_bytes"]


def test_throughput_of_equal_requests_as_a_table(bench, tiny):
    done = bench("throughput", tiny, "--num-prompts", "3", "--input-len", "9", "--output-len", "4")
    assert done.returncode == 0, done.stderr
    for fact in ["27 prompt, 12 output, 39 total", "TTFT", "TPOT", "peak RSS", "outside kernels", "--measure"]:
        assert fact in done.stdout, fact


BAD_MIXES = {
    "no file": (None, "cannot be read"),
    "not JSON": ("requests", "expected"),
    "no counts": ('{"requests": [{"prompt_tokens": 1}]}', "output_tokens"),
    "a fraction": ('{"requests": [{"prompt_tokens": 1.5, "output_tokens": 2}]}', "prompt_tokens"),
    "too long": ('{"requests": [{"prompt_tokens": 60, "output_tokens": 5}]}', "--max-model-len"),
    "nothing": ('{"requests": []}', "no requests"),
}


@pytest.mark.parametrize("name", BAD_MIXES)
def test_a_bad_dataset_is_one_clear_line(name, bench, tiny, tmp_path):
    text, fragment = BAD_MIXES[name]
    if text is not None:
        (tmp_path / "mix.json").write_text(text)
    done = bench("throughput", tiny, "--dataset", tmp_path / "mix.json", "--max-model-len", "64")
    assert done.returncode == 1 and fragment in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_lengths_are_the_same_however_many_run_at_once(bench, tiny):
    done = bench("lengths", tiny, "--max-num-seqs", "1,3,8", "--num-prompts", "9", "--max-tokens", "12",
                 "--temperature", "0.8", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["identical"]
    assert [row["max_num_seqs"] for row in result["rows"]] == [1, 3, 8]
    assert len({row["texts_xxh64"] for row in result["rows"]}) == 1
    for row in result["rows"]:
        assert row["answers"] == 9 and row["different_texts"] == 0
        assert 1 <= row["min_tokens"] <= row["mean_tokens"] <= row["max_tokens"] <= 12


def test_lengths_of_a_prompts_file(bench, tiny, tmp_path):
    lines = [{"prompt_token_ids": [5, 6], "max_tokens": tokens, "ignore_eos": True} for tokens in (2, 4, 6, 8)]
    (tmp_path / "prompts.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = bench("lengths", tiny, "--max-num-seqs", "2", "--prompts", tmp_path / "prompts.jsonl")
    assert done.returncode == 0, done.stderr
    header, row, last = done.stdout.splitlines()
    assert row.split()[:6] == ["2", "4", "5.0", "2.6", "2", "8"]  # the sample standard deviation of 2, 4, 6, 8
    assert last == "All texts are byte-identical."


def test_lengths_of_sharegpt_prompts(bench, tiny, tmp_path):
    talks = [{"conversations": [{"from": "human", "value": f"q{i}"}, {"from": "gpt", "value": "r"}]} for i in range(9)]
    (tmp_path / "talks.json").write_text(json.dumps(talks))
    flags = ("--max-num-seqs", "2", "--max-tokens", "3", "--json")

    def texts_hash(*source) -> str:
        done = bench("lengths", tiny, *flags, *source)
        assert done.returncode == 0, done.stderr
        row = json.loads(done.stdout)["rows"][0]
        assert row["answers"] == 4
        return row["texts_xxh64"]

    picks = [talk["conversations"][0]["value"] for talk in talks]
    random.Random(42).shuffle(picks)  # as in vllm-metal's tools/avg_gen_length.py
    chats = [{"messages": [{"role": "user", "content": prompt}]} for prompt in picks[:4]]
    (tmp_path / "prompts.jsonl").write_text("\n".join(map(json.dumps, chats)))
    assert texts_hash("--dataset-path", tmp_path / "talks.json", "--num-prompts", "4", "--seed", "42") == \
        texts_hash("--prompts", tmp_path / "prompts.jsonl", "--seed", "42")


def test_seeds_decide_the_texts(bench, tiny):
    def texts_hash(seed: int) -> str:
        done = bench("lengths", tiny, "--max-num-seqs", "4", "--num-prompts", "3", "--max-tokens", "8", "--temperature",
                     "1.5", "--seed", seed, "--json")
        return json.loads(done.stdout)["rows"][0]["texts_xxh64"]

    assert texts_hash(1) == texts_hash(1) != texts_hash(2)
