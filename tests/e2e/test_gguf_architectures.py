"""Compares every GGUF architecture with two references: mlx-lm on the checkpoint in Hugging Face's form, and llama.cpp on the
GGUF file made from it. Octavo runs both forms. Also checks that a file with anything unknown in it is refused."""

import functools
import subprocess

import numpy as np
import pytest
from conftest import assert_close, prompts_of
from gguf import GGMLQuantizationType as T
from gguf_cases import CASES
from modelkit import gguf_convert, llama_cpp, oracle
from slow_tests import SEED, repeats

TOLERANCE = 1e-4
PROMPTS = prompts_of(1, 63, 64, 65, 300)
QUANTIZED = ["granite", "qwen35moe", "qwen3next", "gemma4-moe", "gpt-oss", "deepseek2-v3", "phi3", "lfm2",
             "granitehybrid", "nemotron_h_moe"]
GELU_CASES = [name for name, case in CASES.items() if case.uses_gelu]
STEEP = 1024.0
# One case of each architecture.
ARCHS = {case.arch: name for name, case in reversed(CASES.items())}


@functools.cache
def oracle_logits(folder):
    return oracle.folder_logits(folder, PROMPTS)


@functools.cache
def contents(folder, arch):
    """The keys and tensors of the GGUF form."""
    return gguf_convert.read(folder, arch)


@pytest.fixture
def folder(request, make_model):
    case = CASES[request.param]
    return make_model(case.family, **case.fields)


@pytest.fixture
def refusal(dump_logits, tmp_path):
    """refusal(label, keys, tensors) returns why the file is not loaded."""

    def load(label: str, keys: dict, tensors: dict) -> str:
        path = gguf_convert.write(tmp_path / "refused.gguf", label, keys, tensors)
        with pytest.raises(pytest.fail.Exception) as failure:
            dump_logits(path, PROMPTS[:1])
        return str(failure.value)

    return load


@pytest.mark.parametrize("name, folder", [(name, name) for name in CASES], indirect=["folder"], ids=list(CASES))
def test_logits(name, folder, dump_logits, tmp_path):
    case = CASES[name]
    path = gguf_convert.write(tmp_path / "model.gguf", case.arch, *contents(folder, case.arch))
    got = dump_logits(path, PROMPTS).logits
    assert_close(dump_logits(folder, PROMPTS).logits, oracle_logits(folder), TOLERANCE)
    assert_close(got, oracle_logits(folder), TOLERANCE)
    if case.tolerance is None:
        return
    wanted = llama_cpp.logits(path, PROMPTS)
    assert_close(got, wanted, case.tolerance)
    if case.tolerance > TOLERANCE:
        assert all((a.argmax(axis=1) == b.argmax(axis=1)).all() for a, b in zip(got, wanted))


def with_steep_gates(tensors):
    """With gates this large, GELU is 0 or the gate itself, which llama.cpp does not round. A norm follows, so sizes do not matter."""
    changed = dict(tensors)
    for name, value in tensors.items():
        if name.endswith((".ffn_gate.weight", ".inp_gate.weight")):
            changed[name] = value * STEEP
        elif name.endswith(".ffn_gate_up_exps.weight"):
            gate, up = np.split(value, 2, axis=1)
            changed[name] = np.concatenate([gate * STEEP, up], axis=1)
    return changed


@pytest.mark.parametrize("name, folder", [(name, name) for name in GELU_CASES], indirect=["folder"], ids=GELU_CASES)
def test_gelu_is_the_only_difference(name, folder, dump_logits, tmp_path):
    keys, tensors = contents(folder, CASES[name].arch)
    path = gguf_convert.write(tmp_path / "steep.gguf", CASES[name].arch, keys, with_steep_gates(tensors))
    assert_close(dump_logits(path, PROMPTS).logits, llama_cpp.logits(path, PROMPTS), TOLERANCE)


# One of each kind of layer; names, orders and splits must fit quantised matrices, too.
@pytest.mark.parametrize("name, folder", [(name, name) for name in QUANTIZED], indirect=["folder"], ids=QUANTIZED)
def test_quantised_matrices_give_the_logits_of_their_values(name, folder, dump_logits, tmp_path):
    arch = CASES[name].arch
    keys, tensors = contents(folder, arch)
    kind = T.MXFP4 if arch == "gpt-oss" else T.Q8_0  # as people have them
    encoded, decoded = gguf_convert.quantized(tensors, kind)
    stored = gguf_convert.write(tmp_path / "stored.gguf", arch, keys, tensors, encoded, kind)
    plain = gguf_convert.write(tmp_path / "plain.gguf", arch, keys, decoded)
    assert_close(dump_logits(stored, PROMPTS[:4]).logits, dump_logits(plain, PROMPTS[:4]).logits, TOLERANCE)


@pytest.mark.parametrize("arch, folder", list(ARCHS.items()), indirect=["folder"], ids=list(ARCHS))
def test_an_unknown_key_or_tensor_is_refused_by_name(arch, folder, refusal):
    keys, tensors = contents(folder, arch)
    assert f'the metadata key "{arch}.made_up.scale" is not known for architecture "{arch}"' in refusal(
        arch, keys | {f"{arch}.made_up.scale": 2.0}, tensors)
    extra = {"blk.0.made_up.weight": np.ones(8, np.float32)}
    assert f'tensor "blk.0.made_up.weight" is not known for GGUF architecture "{arch}"' in refusal(arch, keys, tensors | extra)


@pytest.mark.parametrize("arch, folder", list(ARCHS.items()), indirect=["folder"], ids=list(ARCHS))
def test_a_file_with_the_name_of_another_architecture_is_refused(arch, folder, refusal):
    other = "qwen3" if arch == "llama" else "llama"
    assert f'the metadata key "{other}.block_count" is missing' in refusal(other, *contents(folder, arch))


# The keys have the name of the other architecture, too.
RENAMED = [("granite", "llama", "llama.attention.scale"), ("mistral3", "llama", "llama.attention.temperature_scale"),
           ("qwen3", "llama", 'norm.weight" is not known'), ("gemma3", "gemma2", "gemma2.rope.freq_base_swa"),
           ("qwen35", "qwen3next", "blk.0.ssm_ba.weight"), ("olmo2", "llama", "blk.0.attn_norm.weight"),
           ("granitehybrid", "granite", 'granite.attention.head_count_kv" differs between layers')]


@pytest.mark.parametrize("arch, other, named, folder", [(*each, ARCHS[each[0]]) for each in RENAMED], indirect=["folder"],
                         ids=[f"{arch}-as-{other}" for arch, other, _ in RENAMED])
def test_a_relabelled_file_is_refused(arch, other, named, folder, refusal):
    keys, tensors = contents(folder, arch)
    renamed = {f"{other}.{key.removeprefix(f'{arch}.')}": value for key, value in keys.items()}
    assert named in refusal(other, renamed, tensors)


@pytest.mark.parametrize("folder", ["qwen35"], indirect=True)
def test_layers_for_multi_token_prediction_are_not_loaded(folder, dump_logits, tmp_path):
    keys, tensors = contents(folder, "qwen35")
    layers = keys["qwen35.block_count"]
    extra = {f"blk.{layers}.nextn.eh_proj.weight": np.ones((8, 8), np.float32)}
    path = gguf_convert.write(tmp_path / "mtp.gguf", "qwen35",
                              keys | {"qwen35.block_count": layers + 1, "qwen35.nextn_predict_layers": 1}, tensors | extra)
    assert_close(dump_logits(path, PROMPTS[:3]).logits, oracle_logits(folder)[:3], TOLERANCE)


@pytest.mark.parametrize("folder", ["granite"], indirect=True)
def test_info_says_what_the_loader_says_before_it_reads_weights(folder, octavo, tmp_path):
    keys, tensors = contents(folder, "granite")
    extra = {"blk.1.made_up.bias": np.ones(8, np.float32)}
    path = gguf_convert.write(tmp_path / "model.gguf", "granite", keys, tensors | extra, vocabulary=True)
    for command in (["info", path], ["generate", path, "x", "--max-tokens", "1"]):
        done = subprocess.run([octavo, *command], capture_output=True, text=True, timeout=120)
        assert done.returncode == 1, done.stdout
        assert 'tensor "blk.1.made_up.bias" is not known for GGUF architecture "granite"' in done.stderr
        assert "Loading" not in done.stderr


@pytest.mark.parametrize("arch, folder", list(ARCHS.items()), indirect=["folder"], ids=list(ARCHS))
def test_a_damaged_header_is_accepted_or_refused(arch, folder, build_dir, tmp_path):
    path = gguf_convert.write(tmp_path / "model.gguf", arch, *contents(folder, arch))
    command = [build_dir / "tests" / "header_mutations", path, "--count", str(repeats(200, 20_000)), "--seed", str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[0]) > 0


@pytest.mark.parametrize("folder", ["llama"], indirect=True)
def test_a_file_without_most_of_its_layers_is_refused_after_a_hundred_tensors(folder, octavo, tmp_path):
    keys, tensors = contents(folder, "llama")
    path = gguf_convert.write(tmp_path / "model.gguf", "llama", keys | {"llama.block_count": 4096}, tensors)
    done = subprocess.run([octavo, "info", path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stderr.strip().endswith("; and 98 more"), done.stderr
