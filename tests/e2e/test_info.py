"""`octavo info` reports whether a checkpoint is supported, and why not, without loading it."""

import dataclasses
import json
import re
import shutil
import subprocess

import embedders
import gguf
import mlx.core as mx
import modelkit
import numpy as np
import pytest
from families import CASES
from gguf import GGMLQuantizationType as T


@pytest.fixture
def info(octavo):
    def run(model):
        done = subprocess.run([octavo, "info", model], capture_output=True, text=True, timeout=120)
        fact = re.search(r"^  supported +(\w+)$", done.stdout, re.MULTILINE)
        assert (done.returncode == 0) == (fact is not None and fact[1] == "yes"), done
        return done

    return run


@pytest.fixture
def copy(make_model, tmp_path):
    """A copy of a checkpoint for a test to break."""

    def make(family: str = "llama", **fields):
        return shutil.copytree(make_model(family, **fields), tmp_path / "model")

    return make


def change_config(folder, **values) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def change_tensors(folder, change) -> None:
    path = folder / "model.safetensors"
    tensors = change(mx.load(str(path)))
    mx.eval(tensors)
    mx.save_safetensors(str(path), tensors)


@pytest.mark.parametrize("name", CASES)
def test_every_family_is_supported(name, info, make_model):
    case = CASES[name]
    done = info(make_model(case.family, **case.recipe))
    assert done.returncode == 0, done.stderr
    assert "transformers knows" not in done.stderr, "a key of config.json is unknown"
    assert re.search(rf"^  model_type +{case.model_type}$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("wrong, nearest", [("lamma", "llama"), ("qwen4", "qwen2, qwen3"), ("mistrall", "mistral")])
def test_an_unknown_family_names_the_nearest(wrong, nearest, info, copy):
    folder = copy()
    change_config(folder, model_type=wrong)
    done = info(folder)
    assert done.returncode == 1
    # The known facts are still printed.
    for fact in (rf"model_type +{wrong}", r"file +[\d.]+ \w+, safetensors, \d+ tensors", r"stored as +F32 [\d.]+ \w+"):
        assert re.search(fact, done.stdout), fact
    assert f'model_type "{wrong}" is not supported; supported types, closest first: {nearest}' in done.stderr
    assert "docs/adding-a-model.md" in done.stderr


@pytest.mark.parametrize("arch", ["rwkv7", "falcon"])
def test_a_gguf_of_an_unknown_architecture_is_refused(arch, info, octavo, tmp_path, monkeypatch):
    """The file is complete: only the architecture's name differs from a file that loads."""
    monkeypatch.setitem(modelkit.FAMILIES, "llama", dataclasses.replace(modelkit.FAMILIES["llama"], gguf_arch=arch))
    path = modelkit.make(tmp_path / "model.gguf", modelkit.Recipe(family="llama", format="gguf", gguf_type="f32"))
    done = info(path)
    assert done.returncode == 1 and re.search(rf"model_type +{arch}", done.stdout)
    loaded = subprocess.run([octavo, "generate", path, "--raw", "-p", "The", "--max-tokens", "1"], capture_output=True, text=True,
                            timeout=120)
    assert loaded.returncode == 1
    for text in (done.stderr, loaded.stderr):
        assert f'GGUF architecture "{arch}" is not supported; supported are bert, deepseek2,' in text and "safetensors" in text


@pytest.mark.parametrize("kind", [T.IQ1_S, T.TQ2_0, T.NVFP4], ids=lambda kind: kind.name)
def test_a_gguf_type_that_cannot_be_loaded_is_refused_by_name(kind, info, tmp_path):
    block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("token_embd.weight", np.zeros((8, 256 // block * block_bytes), np.uint8), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    done = info(path)
    assert done.returncode == 1 and f"its type {kind.name} is not supported; use a file in F32, F16" in done.stderr


def test_missing_tensors_are_listed(info, copy):
    folder = copy()
    change_tensors(folder, lambda tensors: {k: v for k, v in tensors.items() if ".layers.2." not in k})
    done = info(folder)
    assert done.returncode == 1
    assert "model.layers.2.self_attn.q_proj.weight" in done.stderr
    assert re.search(r"; and 6 more$", done.stderr.strip()), done.stderr  # 9 in total, 3 of them by name


def test_a_tensor_of_another_shape_is_named(info, copy):
    folder = copy("qwen3")
    change_tensors(folder, lambda tensors: tensors | {"model.norm.weight": mx.ones(64)})
    assert 'tensor "model.norm.weight" has shape [64]' in info(folder).stderr


def test_an_unsupported_config_value_is_named(info, copy):
    folder = copy()
    change_config(folder, hidden_act="relu")
    done = info(folder)
    assert done.returncode == 1 and "hidden_act" in done.stderr


def test_a_key_that_octavo_does_not_read_is_refused_by_all_commands(info, octavo, copy):
    folder = copy("smollm3")
    change_config(folder, mlp_bias=True)
    loaded = subprocess.run([octavo, "generate", folder, "--raw", "-p", "The", "--max-tokens", "1"], capture_output=True, text=True,
                            timeout=120)
    assert loaded.returncode == 1
    for text in (info(folder).stderr, loaded.stderr):
        assert '"mlp_bias" is true, but only transformers\' default false is supported for this family' in text


def test_a_key_that_transformers_does_not_know_is_a_warning_or_refused(info, octavo, copy):
    folder = copy()
    change_config(folder, new_gate=2)
    done = info(folder)
    assert done.returncode == 0 and 'neither octavo nor transformers knows "new_gate"' in done.stderr
    strict = subprocess.run([octavo, "info", folder, "--strict-config"], capture_output=True, text=True, timeout=120)
    assert strict.returncode == 1 and '"new_gate"; leave out --strict-config' in strict.stderr


def test_without_a_tokenizer_nothing_can_be_served(info, copy):
    folder = copy()
    (folder / "tokenizer.json").unlink()
    assert "tokenizer.json" in info(folder).stderr


def test_an_embedding_model_is_reported_as_one(info, make_model, tmp_path):
    folder = embedders.dress(make_model("qwen3", tied=False), tmp_path / "embedder", flat=True, headless=True)
    done = info(folder)
    assert re.search(r"embeds +the last token, normalised", done.stdout), done
    bad = embedders.dress(make_model("qwen3"), tmp_path / "cls", "cls_token")
    assert "pooling_mode_cls_token" in info(bad).stderr


def test_the_tower_of_images_is_shown_or_why_there_is_none(info, make_model):
    assert re.search(r"images +Qwen, 3 layers of 144, patches of 16\n +[0-9.]+. parameters, ", info(make_model("qwen3.5-vision")).stdout)
    # As converted by mlx-lm, which keeps vision_config.
    assert re.search(r"images +none: .*no tensor is named", info(make_model("qwen3.5-mlx")).stdout)
    assert re.search(r"images +none: the model takes text only", info(make_model("qwen3")).stdout)


def test_json_has_the_same_facts(octavo, smollm2_gguf):
    done = subprocess.run([octavo, "info", smollm2_gguf, "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["supported"], facts["family"], facts["container"], facts["context"]) == (True, "llama", "GGUF", 8192)
    assert facts["kv_bytes_per_token"] == 23040 and facts["memory"]["max_model_len"] == 8192
    assert sum(facts["stored_bytes"].values()) <= facts["file_bytes"]
