"""`octavo generate` and `octavo info` as a user runs them."""

import json
import os
import re
import subprocess
import sys

import pytest


@pytest.fixture
def generate(octavo, smollm2_gguf):
    def run(*flags, model=smollm2_gguf) -> dict:
        done = call(octavo, "generate", model, "--raw", "--json", *flags)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def call(octavo, *arguments):
    return subprocess.run([str(a) for a in (octavo, *arguments)], capture_output=True, text=True, timeout=300)


def test_capital_of_france(octavo, smollm2_gguf):
    done = call(octavo, "generate", smollm2_gguf, "-p", "Name the capital city of France.", "--chat")
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout


def test_the_chat_template_is_the_default_and_the_prompt_comes_from_anywhere(octavo, smollm2_gguf, tmp_path):
    question = "Name the capital city of France."
    flags = ["--json", "--max-tokens", "8"]
    chat = json.loads(call(octavo, "generate", smollm2_gguf, "-p", question, "--chat", *flags).stdout)
    raw = json.loads(call(octavo, "generate", smollm2_gguf, "-p", question, "--raw", *flags).stdout)
    assert len(chat["prompt_token_ids"]) > len(raw["prompt_token_ids"])
    file = tmp_path / "question.txt"
    file.write_text(question + "\n")
    ways = {"-p": ["-p", question], "positional": [question], "--file": ["-f", file], "stdin": [], "a dash": ["-f", "-"]}
    for name, way in ways.items():
        command = [str(a) for a in (octavo, "generate", smollm2_gguf, *way, *flags)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, input=question + "\n")
        assert done.returncode == 0, (name, done.stderr)
        assert json.loads(done.stdout)["prompt_token_ids"] == chat["prompt_token_ids"], name
    both = json.loads(call(octavo, "generate", smollm2_gguf, "Answer this:", "-f", file, *flags).stdout)
    assert len(both["prompt_token_ids"]) > len(chat["prompt_token_ids"])


def test_run_answers_a_prompt_and_exits(octavo, smollm2_gguf):
    done = call(octavo, "run", smollm2_gguf, "Name the capital city of France.", "--temperature", "0", "--max-tokens", "16")
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout and done.stdout.count("\n") <= 2


def test_stop_string_ends_the_text_before_it(generate):
    whole = generate("-p", "One, two, three, four,", "--max-tokens", "12")
    assert "seven" in whole["text"]
    cut = generate("-p", "One, two, three, four,", "--max-tokens", "12", "--stop", "zzz", "--stop", "seven")
    assert cut["finish_reason"] == "stop"
    assert cut["text"] == whole["text"][: whole["text"].index("seven")]


def test_a_seed_decides_the_answer(generate):
    flags = ["-p", "Once upon a time", "--max-tokens", "12", "--temperature", "1.5"]
    first = generate(*flags, "--seed", "7")
    assert generate(*flags, "--seed", "7")["token_ids"] == first["token_ids"]
    assert generate(*flags, "--seed", "8")["token_ids"] != first["token_ids"]


def test_top_k_of_one_is_greedy(generate):
    greedy = generate("-p", "Once upon a time", "--max-tokens", "8")
    drawn = generate("-p", "Once upon a time", "--max-tokens", "8", "--temperature", "2", "--top-k", "1", "--seed", "3")
    assert drawn["token_ids"] == greedy["token_ids"]


def test_chunked_prefill_and_page_size_leave_no_trace(generate):
    prompt = "Tell me about the history of the printing press and the octavo format. " * 4
    whole = generate("-p", prompt, "--max-tokens", "16")
    other = generate("-p", prompt, "--max-tokens", "16", "--max-num-batched-tokens", "13", "--block-size", "48")
    assert len(whole["prompt_token_ids"]) > 50
    assert other["token_ids"] == whole["token_ids"]


def test_max_tokens_ends_with_length(generate):
    answer = generate("-p", "Once upon a time", "--max-tokens", "3")
    assert len(answer["token_ids"]) == 3
    assert answer["finish_reason"] == "length"


def test_the_context_ends_the_answer(generate):
    answer = generate("-p", "Once upon a time", "--max-tokens", "100", "--max-model-len", "16", "--ignore-eos")
    assert len(answer["prompt_token_ids"]) + len(answer["token_ids"]) == 16
    assert answer["finish_reason"] == "length"


BAD_CALLS = {
    "no such model": (["generate", "nowhere.gguf", "-p", "x"], "nowhere.gguf"),
    "prompt too long": (["generate", "MODEL", "-p", "word " * 50, "--max-model-len", "16"], "at most 15"),
    "context too long": (["info", "MODEL", "--max-model-len", "10000000"], "--max-model-len"),
    "pages too large": (["info", "MODEL", "--kv-memory", "900GiB"], "--kv-memory"),
    "unreadable size": (["info", "MODEL", "--kv-memory", "lots"], "4GiB"),
    "block size": (["info", "MODEL", "--block-size", "12"], "multiple of 8"),
    "dtype": (["info", "MODEL", "--dtype", "int8"], "bfloat16"),
    "wired without Metal": (["info", "MODEL", "--device", "cpu", "--wired-limit", "1GiB"], "--wired-limit"),
    "memory fraction": (["info", "MODEL", "--memory-fraction", "1.5"], "--memory-fraction"),
    "negative temperature": (["generate", "MODEL", "-p", "x", "--temperature", "-1"], "temperature"),
    "top_p of zero": (["generate", "MODEL", "-p", "x", "--top-p", "0"], "top_p"),
    "no tokens": (["generate", "MODEL", "-p", "x", "--max-tokens", "0"], "max_tokens"),
    "empty prompt": (["generate", "MODEL", "-p", ""], "prompt"),
}
if sys.platform == "linux":
    BAD_CALLS["no Metal here"] = (["info", "MODEL", "--device", "metal"], "--device cpu")


@pytest.mark.parametrize("name", BAD_CALLS)
def test_an_error_says_what_to_change(name, octavo, smollm2_gguf):
    arguments, fragment = BAD_CALLS[name]
    done = call(octavo, *[smollm2_gguf if a == "MODEL" else a for a in arguments])
    assert done.returncode in (1, 2)
    assert fragment in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_an_unknown_family_lists_the_known_ones(octavo, make_model, tmp_path):
    folder = make_model("llama")
    for file in folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    config = json.loads((folder / "config.json").read_text()) | {"model_type": "lamma"}
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = call(octavo, "info", tmp_path)
    assert done.returncode == 1
    assert "lamma" in done.stderr and "llama" in done.stderr and "adding-a-model" in done.stderr


def test_a_panic_in_the_template_library_is_one_clear_line(octavo, make_model, tmp_path):
    folder = make_model("llama")
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "chat_template.jinja").write_text("{{ ''[::-1] }}")  # minijinja 3.0.5 panics on it
    done = call(octavo, "generate", tmp_path, "-p", "x", "--chat")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_info_shows_the_key_facts(octavo, smollm2_gguf):
    done = call(octavo, "info", smollm2_gguf)
    assert done.returncode == 0, done.stderr
    for fact in ["llama", "134.5M", "Q4_1", "bfloat16", "8192 tokens", "22.5 KiB", "pages", "budget"]:
        assert fact in done.stdout, fact


def test_info_shows_the_instruction_set_and_the_threads(octavo, smollm2_gguf):
    environment = os.environ | {"OCTAVO_ISA": "scalar", "OCTAVO_THREADS": "1"}
    done = subprocess.run([octavo, "info", smollm2_gguf], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^cpu: scalar \(of scalar[a-z0-9, -]*\), 1 thread$", done.stdout, re.MULTILINE)


def test_info_shows_how_an_mlx_checkpoint_is_quantised(octavo, make_model):
    done = call(octavo, "info", make_model("qwen3", format="mlx", bits=4, group_size=64))
    assert done.returncode == 0, done.stderr
    assert "affine 4-bit in groups of 64" in done.stdout
