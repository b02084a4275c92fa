"""What is typed and what is printed: mistakes on the command line and the words of other programs. Most rows need no model:
NOWHERE is a path that does not exist, so a command line that is accepted ends with that message."""

import json
import os
import re
import socket
import subprocess
import time

import pytest
from conftest import REPO

NOWHERE = "/no/such/model.gguf"
ACCEPTED = "no such file or folder"


def call(octavo, *arguments, env=None, stdin=subprocess.DEVNULL):
    return subprocess.run([str(a) for a in (octavo, *arguments)], capture_output=True, text=True, timeout=120, stdin=stdin,
                          env=os.environ | {"HF_HUB_OFFLINE": "1"} | (env or {}))


# What is typed | status | parts of stderr, in this order
MISTAKES = [
    # commands
    ("generat m", 2, ["unknown command generat", "did you mean generate?", "octavo --help"]),
    ("serv m", 2, ["unknown command serv", "serve"]),
    ("frobnicate", 2, ["unknown command frobnicate; octavo --help lists the commands"]),
    ("ps --url http://127.0.0.1:9", 1, ["http://127.0.0.1:9/api/ps: connection refused", "--url"]),
    ("stop", 2, ["stop: MODEL is missing"]),
    ("create x", 2, ["create:", "--config serve.toml"]),
    ("push x", 2, ["push: octavo does not upload models"]),
    ("cp a b", 2, ["--served-model-name"]),
    ("signin", 2, ["octavo needs no account", "HF_TOKEN"]),
    ("convert a", 2, ["octavo loads GGUF, safetensors and MLX files as they are", "octavo quantize"]),
    ("quantize a", 2, ["octavo quantize: OUT is missing"]),
    ("quantize a b --bits 5", 2, ["--bits: 5 is not one of the values; use 4 or 8"]),
    ("version", 2, ["octavo --version"]),
    ("model.gguf", 2, ["model.gguf is not a command", "octavo run model.gguf"]),
    ("qwen3-0.6b", 2, ["octavo run qwen3-0.6b"]),
    ("-m model.gguf -p hi", 2, ["-m needs a command", "octavo run -m model.gguf -p hi"]),
    ("bench", 2, ["octavo bench: a command is missing", "machine", "serve"]),
    ("bench serv", 2, ["unknown command serv", "did you mean serve?", "octavo bench --help"]),
    # arguments
    ("info", 2, ["octavo info: MODEL is missing", "octavo info qwen3-0.6b"]),
    ("serve a b c --port 0", 1, ["a: no such model here"]),
    ("serve --models-dir no-such-folder --port 0", 1, ["--models-dir no-such-folder: no such folder"]),
    ("serve --keep-alive soon --port 0", 1, ["--keep-alive soon: write a duration such as 5m"]),
    ("serve a b --served-model-name x", 1, ["--served-model-name: several models are served"]),
    ("info a b", 2, ["octavo info: unexpected argument: b"]),
    ("serve m --port", 2, ["--port: the value is missing"]),
    ("serve m --no-such-flag", 2, ["unknown flag --no-such-flag", "octavo serve --help lists the flags"]),
    ("serve m --max-len 5", 2, ["unknown flag --max-len", "did you mean --max-model-len"]),
    ("serve m --max-num-seq 5", 2, ["did you mean --max-num-seqs"]),
    ("ls --jsn", 2, ["unknown flag --jsn; did you mean --json?"]),
    ("serve m --log-format xml", 2, ["--log-format: xml is not one of the values; use text or json"]),
    ("info m --device gpu", 2, ["--device: gpu is not one of the values; use auto, cpu or metal"]),
    ("generate m --raw --chat -p x", 2, ["--chat cannot be combined with --raw"]),
    ("generate m -p x --prompts y", 2, ["--prompt cannot be combined with --prompts"]),
    ("generate m -p x --output y", 2, ["--output needs --prompts as well"]),
    # numbers
    ("serve m --port 80000", 2, ["--port: 80000 is not a port; use 1 to 65535"]),
    ("serve m --port http", 2, ["--port: http is not a port; use 1 to 65535"]),
    ("serve m --max-model-len many", 2, ['--max-model-len: "many" is not a whole number', "at least 1", "100k"]),
    ("serve m --max-model-len 2.5K", 2, ["is not a whole number"]),
    ("serve m --max-num-seqs 0", 2, ["--max-num-seqs: 0 is out of range; use at least 1"]),
    ("serve m --threads -2", 2, ["--threads: -2 is out of range; use at least 1"]),
    ("serve m --drain-timeout -1", 2, ["--drain-timeout: -1 is out of range; use at least 0"]),
    ("pull m --connections 100", 2, ["--connections: 100 is out of range; use 1 to 64"]),
    ("doctor --port 70000", 2, ["use 1 to 65535"]),
    ("generate m -p x --temperature warm", 2, ["--temperature: warm is not a number"]),
    ("generate m -p x --top-k 1.5", 2, ["--top-k: 1.5 is not a whole number"]),
    # flags of other programs that are refused
    ("serve m --data-parallel-size 2", 2, ["--data-parallel-size 2: not supported"]),
    ("serve m -dp 4", 2, ["-dp 4: not supported"]),
    ("serve m -tp 80", 2, ["--tensor-parallel-size: 80 is out of range; use 1 to 64"]),
    ("serve m --lora a.gguf", 2, ["--lora a.gguf: not supported", "--enable-lora --lora-modules name=FOLDER"]),
    ("serve m --lora-modules", 2, ["--lora-modules: name=path is missing"]),
    ("serve m --tokenizer x", 2, ["--tokenizer x: not supported; octavo uses the model's own tokenizer"]),
    ("serve m --no-enable-chunked-prefill", 2, ["not supported; prompts are always prefilled in chunks"]),
    ("serve m --swap-space 4", 2, ["--swap-space 4: not supported", "--prefix-disk"]),
    ("serve m --ssl-keyfile k", 2, ["not supported", "TLS proxy"]),
    ("serve m --revision main", 2, ["ORG/NAME@REVISION"]),
    ("serve m -ngl 20", 2, ["-ngl 20: not supported", "--device"]),
    ("serve m -md d.gguf", 2, ["-md d.gguf: not supported; use --speculative-config"]),
    ("serve m -n 5", 2, ["unknown flag -n; its equivalent --max-tokens is not a flag of octavo serve"]),
    ("serve m --enforce-eager=false", 2, ["--enforce-eager: takes no value"]),
    ("serve m --data-parallel-size", 2, ["--data-parallel-size: the value is missing"]),
    ("serve m --served-model-name", 2, ["--served-model-name: a name is missing"]),
]


@pytest.mark.parametrize("typed, status, parts", MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_mistake_is_named_in_one_line(octavo, typed, status, parts):
    done = call(octavo, *typed.split())
    assert done.returncode == status and done.stdout == "", done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    at = 0
    for part in parts:
        found = done.stderr.find(part, at)
        assert found >= 0, f"{part!r} is not in {done.stderr!r} after {done.stderr[:at]!r}"
        at = found + len(part)


# What is typed before NOWHERE | notes on stderr
ACCEPTED_FLAGS = [
    ("serve", "--enable-auto-tool-choice", "tool calls are always parsed"),
    ("serve", "--data-parallel-size 1", "one device"),
    ("serve", "--enable-chunked-prefill", "always prefilled in chunks"),
    ("serve", "--trust-remote-code", "runs no code"),
    ("serve", "--enforce-eager", "captures no graphs"),
    ("serve", "--seed 42", "send seed"),
    ("serve", "--disable-log-requests", "never logged"),
    ("serve", "--load-format auto", "detected from the files"),
    ("serve", "--swap-space 0", "swaps no pages"),
    ("serve", "-ngl 99", "one device"),
    ("serve", "--jinja", "always rendered as Jinja"),
    ("serve", "-c 0", "model's own context"),
    # the same flag, or another name of one: nothing to say
    ("serve", "--tensor-parallel-size 1", None),
    ("serve", "-tp 1", None),
    ("serve", "--dtype auto", None),
    ("serve", "--enable-prefix-caching", None),
    ("serve", "--gpu-memory-utilization 0.8", None),
    ("serve", "--max-model-len 100k", None),
    ("serve", "--max_model_len 4K", None),
    ("serve", "--ctx-size 4096", None),
    ("serve", "-np 4", None),
    ("serve", "-b 256", None),
    ("serve", "--alias x", None),
    ("generate", "-n 8 --temp 0.5 -c 512 -t 2 -p hi", None),
    ("generate", "--n-predict 8 --repeat-penalty 1.1 -p hi", None),
    ("generate", "-no-cnv -p hi", None),
    ("run", "-sys short", None),
]


@pytest.mark.parametrize("command, flags, note", ACCEPTED_FLAGS, ids=[f"{row[0]} {row[1]}" for row in ACCEPTED_FLAGS])
def test_flags_of_other_programs_are_accepted(octavo, command, flags, note):
    for model in ([NOWHERE], ["-m", NOWHERE], ["--model", NOWHERE]):
        port = ["--port", "0"] if command == "serve" else []
        done = call(octavo, command, *model, *port, *flags.split())
        lines = done.stderr.splitlines()
        assert done.returncode == 1 and ACCEPTED in lines[-1], done.stderr
        notes = [line for line in lines if line.startswith("octavo: ") and "not needed" in line]
        if note is None:
            assert not notes, done.stderr
        else:
            assert len(notes) == 1 and note in notes[0] and flags.split("=")[0].split()[0] in notes[0], done.stderr


def test_octavo_alone_and_help_show_the_commands(octavo):
    alone = call(octavo)
    assert alone.returncode == 0 and "Subcommands:" in alone.stdout and alone.stderr == ""
    assert call(octavo, "help").stdout == alone.stdout == call(octavo, "--help").stdout
    assert call(octavo, "help", "serve").stdout == call(octavo, "serve", "--help").stdout != alone.stdout


@pytest.mark.parametrize("typed, meant", [("list", "ls"), ("show", "info"), ("models", "ls")])
def test_commands_of_other_programs(octavo, typed, meant, tmp_path):
    arguments = ["--json"] if meant == "ls" else [NOWHERE]
    home = {"HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")}
    other, own = call(octavo, typed, *arguments, env=home), call(octavo, meant, *arguments, env=home)
    assert other.stderr.splitlines()[0] == f"octavo: octavo {typed} is octavo {meant}"
    assert (other.returncode, other.stdout) == (own.returncode, own.stdout)


def test_json_lists(octavo, tmp_path):
    home = {"HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")}
    assert json.loads(call(octavo, "ls", "--json", env=home).stdout) == []
    aliases = json.loads(call(octavo, "ls", "--aliases", "--json").stdout)
    assert len(aliases) >= 80 and all("/" in alias["model"] for alias in aliases)
    assert {"llama3.2", "gemma3", "mistral", "qwen3.5", "phi4", "deepseek-r1"} <= {alias["name"] for alias in aliases}


@pytest.mark.parametrize("text, parts", [
    ("port: 9000\n", ['line 1: "port: 9000" is not NAME = VALUE', "write port = 9000"]),
    ("# a comment\n\n--port 9000\n", ["line 3", "write port = 9000"]),
    ("[serve]\nport = 1\n", ["line 1: sections are not supported"]),
    ('host = "127.0.0.1\n', ["line 1: the closing quote is missing"]),
    ("max-num-sequences = 1\n", ["unknown flag --max-num-sequences"]),
    ("port = 80000\n", ["--port: 80000 is not a port; use 1 to 65535"]),
])
def test_a_config_file_says_the_line_and_what_to_write(octavo, tmp_path, text, parts):
    config = tmp_path / "serve.toml"
    config.write_text(text)
    done = call(octavo, "serve", NOWHERE, "--config", config)
    assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1, done.stderr
    for part in parts:
        assert part in done.stderr, done.stderr


def test_a_missing_prompt_is_an_error(octavo, smollm2_gguf):
    done = call(octavo, "generate", smollm2_gguf)  # stdin is empty
    assert done.returncode == 2 and done.stdout == "" and "prompt: is empty" in done.stderr


def test_a_context_beyond_the_models_own_is_refused(octavo, smollm2_gguf):
    done = call(octavo, "info", smollm2_gguf, "--max-model-len", "16k")
    assert done.returncode == 1
    assert "--max-model-len 16000 is more than the model's own context of 8192 tokens" in done.stderr
    assert """--hf-overrides '{"max_position_embeddings": 16000}'""" in done.stderr
    assert call(octavo, "info", smollm2_gguf, "--max-model-len", "8K").returncode == 0


def test_the_quantisation_must_be_the_files(octavo, smollm2_gguf):
    flags = ["-p", "x", "--max-tokens", "1"]
    done = call(octavo, "generate", smollm2_gguf, "--quantization", "gguf", *flags)
    assert done.returncode == 0 and "--quantization gguf: not needed" in done.stderr
    refused = call(octavo, "generate", smollm2_gguf, "--quantization", "awq", *flags)
    assert refused.returncode == 1 and "--quantization awq: octavo runs a model as it is stored" in refused.stderr


def test_a_chat_template_comes_from_a_file(octavo, smollm2_gguf, tmp_path):
    template = tmp_path / "shout.jinja"
    template.write_text("{% for m in messages %}{{ m.content | upper }}{% endfor %}")
    flags = ["--max-tokens", "1", "--json", "--chat-template", template]
    shouted = json.loads(call(octavo, "generate", smollm2_gguf, "hello", *flags).stdout)
    raw = json.loads(call(octavo, "generate", smollm2_gguf, "HELLO", "--raw", *flags).stdout)
    ids = shouted["prompt_token_ids"]  # the raw prompt may have a first token before them
    assert ids and raw["prompt_token_ids"][-len(ids):] == ids
    missing = call(octavo, "generate", smollm2_gguf, "x", "--chat-template", tmp_path / "none.jinja")
    assert missing.returncode == 1 and "--chat-template" in missing.stderr and "none.jinja" in missing.stderr


def test_no_network_is_reported_within_seconds(octavo, tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        env = {"HF_HUB_OFFLINE": "", "HF_ENDPOINT": f"http://127.0.0.1:{unused.getsockname()[1]}", "NO_PROXY": "127.0.0.1",
               "HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")}
        start = time.monotonic()
        command = [str(octavo), "run", "org/model"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=os.environ | env)
        first = process.stderr.readline()
        assert time.monotonic() - start < 5 and "trying again in 0.5 s" in first and "HF_HUB_OFFLINE=1" in first, first
        rest = process.stderr.read()
        assert process.wait(60) == 1 and time.monotonic() - start < 15
    assert rest.count("trying again") == 2 and "gave up after 4 attempts" in rest and "octavo ls" in rest, rest


def test_the_version_names_the_commit_and_the_arithmetic(octavo):
    version = re.search(r"^project\(octavo VERSION ([\d.]+)", (REPO / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
    arithmetic = re.search(r"kArithmeticVersion = (\d+);", (REPO / "src/kernels/arithmetic.h").read_text())[1]
    said = call(octavo, "--version").stdout
    commit = r"(?:[0-9a-f]{8}(?:-dirty)?|unknown)"
    assert re.fullmatch(rf"octavo {re.escape(version)} \(commit {commit}, arithmetic {arithmetic}\)\n", said), said


def test_the_name_that_was_typed_is_not_suggested(octavo, tmp_path):
    done = call(octavo, "info", "qwen3-0.6b", env={"HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")})
    assert done.returncode == 1
    similar = done.stderr.split("Similar names: ")[1].strip().split(", ")
    assert "qwen3-0.6b" not in similar and len(similar) == 3


def test_variables_of_vllm_metal_are_reported_once(octavo):
    env = {"VLLM_METAL_USE_PAGED_ATTENTION": "1", "VLLM_METAL_MEMORY_FRACTION": "0.3"}
    done = call(octavo, "serve", NOWHERE, "--max-model-len", "2048", env=env)
    note, problem = done.stderr.splitlines()
    assert note == ("octavo: variables of vllm-metal have no effect: VLLM_METAL_MEMORY_FRACTION (use --memory-fraction), "
                    "VLLM_METAL_USE_PAGED_ATTENTION (the KV cache is always paged)")
    assert ACCEPTED in problem
    assert "VLLM_METAL" not in call(octavo, "ls", env=env).stderr
