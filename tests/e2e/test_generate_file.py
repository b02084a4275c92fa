"""`octavo generate --prompts`: a file of prompts, run in batches."""

import json
import subprocess

import pytest

COUNTING = "One, two, three, four,"
PROMPTS = [COUNTING, "Once upon a time", "The printing press", "Bread is made of"]


@pytest.fixture(scope="module")
def call(octavo):
    def run(*arguments, stdin: str | None = None) -> subprocess.CompletedProcess:
        command = [str(a) for a in (octavo, "generate", *arguments)]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture(scope="module")
def tiny(make_model):
    return make_model("llama")


@pytest.fixture(scope="module")
def answer_all(call, tiny):
    """answer_all(lines, *flags) sends the lines to stdin and returns the parsed output lines."""

    def run(lines: list[dict], *flags, model=tiny) -> list[dict]:
        done = call(model, "--prompts", "-", *flags, stdin="\n".join(map(json.dumps, lines)))
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def tokens(answer: dict) -> list[int]:
    return answer["choices"][0]["token_ids"]


def test_answers_are_in_order_and_equal_those_of_single_runs(call, answer_all, smollm2_gguf):
    # The first prompt is the longest, so that the others have to wait for it.
    lines = [{"prompt": prompt, "max_tokens": 24 - 7 * i} for i, prompt in enumerate(PROMPTS)]
    answers = answer_all(lines, model=smollm2_gguf)
    assert [answer["index"] for answer in answers] == [0, 1, 2, 3]
    for line, answer in zip(lines, answers):
        alone = json.loads(call(smollm2_gguf, "-p", line["prompt"], "--max-tokens", line["max_tokens"], "--json").stdout)
        [choice] = answer["choices"]
        assert choice["text"] == alone["text"] and choice["token_ids"] == alone["token_ids"]
        assert choice["finish_reason"] == alone["finish_reason"]
        prompt, output = len(alone["prompt_token_ids"]), len(alone["token_ids"])
        assert answer["usage"] == {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output,
                                   "prompt_tokens_details": {"cached_tokens": 0}}


def test_a_file_an_output_and_a_summary(call, tiny, tmp_path):
    prompts, output = tmp_path / "prompts.jsonl", tmp_path / "answers.jsonl"
    prompts.write_text('{"prompt": "a", "id": "x"}\n\n{"prompt": "b", "id": 7}\n')
    done = call(tiny, "--prompts", prompts, "--output", output, "--max-tokens", "3", "--ignore-eos")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    answers = [json.loads(line) for line in output.read_text().splitlines()]
    assert [answer["id"] for answer in answers] == ["x", 7]
    [summary] = done.stderr.splitlines()
    assert summary.startswith("2 requests: ") and "and 6 output tokens in " in summary and "output tok/s" in summary


def test_flags_are_the_defaults_of_lines(answer_all):
    short, long = answer_all([{"prompt": "a"}, {"prompt": "a", "max_tokens": 5}], "--max-tokens", "2", "--ignore-eos")
    assert len(tokens(short)) == 2 and len(tokens(long)) == 5


def test_chat_flag_and_messages_agree(answer_all):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    by_flag, by_line = answer_all([{"prompt": "Hello"}, {"messages": messages}], "--chat", "--system", "Be brief.",
                                  "--max-tokens", "4")
    assert by_flag["usage"]["prompt_tokens"] == by_line["usage"]["prompt_tokens"]
    assert tokens(by_flag) == tokens(by_line)


def test_seeds_belong_to_lines(answer_all):
    line = {"prompt": "a", "temperature": 1.5, "max_tokens": 8, "ignore_eos": True}
    seven, eight, again, free, other = answer_all([line | {"seed": 7}, line | {"seed": 8}, line | {"seed": 7}, line, line])
    assert tokens(seven) == tokens(again) != tokens(eight)
    assert tokens(free) != tokens(other)  # without a seed, each line gets its own


def test_n_choices_and_logprobs(answer_all):
    [answer] = answer_all([{"prompt_token_ids": [5, 6, 7], "n": 2, "temperature": 1.0, "seed": 1, "logprobs": 2,
                            "prompt_logprobs": 1, "max_tokens": 4, "ignore_eos": True}])
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    assert answer["usage"]["completion_tokens"] == 8
    for choice in answer["choices"]:
        assert [entry["token_id"] for entry in choice["logprobs"]] == choice["token_ids"]
        assert all(len(entry["top_logprobs"]) == 2 and entry["logprob"] <= 0 for entry in choice["logprobs"])
    assert answer["prompt_logprobs"][0] is None
    assert [entry["token_id"] for entry in answer["prompt_logprobs"][1:]] == [6, 7]


def test_the_stop_reason_is_reported(answer_all):
    [whole] = answer_all([{"prompt": "a", "max_tokens": 6, "ignore_eos": True}])
    third = tokens(whole)[2]
    [cut] = answer_all([{"prompt": "a", "max_tokens": 6, "ignore_eos": True, "stop_token_ids": [third]}])
    assert cut["choices"][0]["finish_reason"] == "stop" and cut["choices"][0]["stop_reason"] == third
    assert tokens(cut) == tokens(whole)[:tokens(whole).index(third) + 1]


def test_a_shared_prefix_is_computed_once(answer_all):
    line = {"prompt_token_ids": [i % 100 for i in range(130)], "max_tokens": 2}
    first, second = answer_all([line, line], "--max-num-seqs", "1")
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] == 128
    assert tokens(first) == tokens(second)


def test_an_invalid_request_does_not_affect_the_others(call, tiny):
    lines = '{"prompt": "a", "top_p": 7, "id": "bad"}\n{"prompt": "a", "max_tokens": 2}\n'
    done = call(tiny, "--prompts", "-", stdin=lines)
    bad, good = map(json.loads, done.stdout.splitlines())
    assert "top_p" in bad["error"] and bad["id"] == "bad"
    assert "error" not in good and len(tokens(good)) > 0
    assert done.returncode == 2 and "2 requests, 1 failed" in done.stderr


BAD_LINES = {
    "unknown field": ('{"prompt": "x", "max_token": 5}', ["line 2", "max_token:"]),
    "wrong type": ('{"prompt": "x", "temperature": "hot"}', ["line 2", "temperature", "number"]),
    "two prompts": ('{"prompt": "x", "messages": []}', ["line 2", "prompt"]),
    "not JSON": ('{"prompt": ', ["line 2", "JSON"]),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_an_error_names_line_and_field(name, call, tiny):
    line, fragments = BAD_LINES[name]
    done = call(tiny, "--prompts", "-", stdin=f'{{"prompt": "fine"}}\n{line}\n')
    assert done.returncode == 1 and done.stdout == ""
    assert all(fragment in done.stderr for fragment in fragments), done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_one_prompt_and_a_file_exclude_each_other(call, tiny):
    assert "cannot be combined" in call(tiny, "-p", "x", "--prompts", "-").stderr
    assert "is empty" in call(tiny).stderr
    missing = call(tiny, "--prompts", "nowhere.jsonl")
    assert missing.returncode == 1 and "nowhere.jsonl" in missing.stderr


def test_penalties_change_an_answer(answer_all):
    line = {"prompt": "a", "max_tokens": 12, "ignore_eos": True}
    plain, by_line = answer_all([line, line | {"frequency_penalty": 2.0, "repetition_penalty": 5.0}])
    [by_flag] = answer_all([line], "--frequency-penalty", "2", "--repetition-penalty", "5")
    assert tokens(by_flag) == tokens(by_line) != tokens(plain)
