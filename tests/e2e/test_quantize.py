"""`octavo quantize` against mlx_lm.convert: the same tensors, byte for byte, and the same settings in config.json."""

import importlib
import json
import shutil
import subprocess
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from conftest import assert_close, prompts_of
from mlx.utils import tree_flatten
from mlx_lm.utils import load_model
from modelkit import oracle

PROMPTS = prompts_of(5, 70)
EXACT = 1e-3
FAMILIES = ["llama", "llama-tied", "mistral", "qwen2", "qwen3", "smollm2", "smollm3", "gemma2", "gemma3-text", "olmo2", "olmo3", "phi3",
            "granite", "glm4", "ministral3", "qwen3_moe", "qwen3_moe-mlx", "qwen2_moe", "mixtral"]


def quantize(octavo, *arguments):
    return subprocess.run([str(a) for a in (octavo, "quantize", *arguments)], capture_output=True, text=True, timeout=300)


def converted(folder, out, monkeypatch, **options) -> tuple[dict[str, mx.array], dict]:
    """Returns the weights and the config that mlx_lm.convert would save. The tokenizer is not loaded."""
    module = importlib.import_module("mlx_lm.convert")
    saved = {}

    def load(path, **_):
        model, config = load_model(Path(path), lazy=True)
        return model, None, config

    monkeypatch.setattr(module, "load", load)
    monkeypatch.setattr(module, "save", lambda path, source, model, tokenizer, config: saved.update(model=model, config=config))
    module.convert(str(folder), str(out), quantize=True, **options)
    return dict(tree_flatten(saved["model"].parameters())), saved["config"]


def loaded(folder) -> dict[str, mx.array]:
    tensors = {}
    for path in folder.glob("*.safetensors"):
        tensors |= mx.load(str(path))
    return tensors


def raw(array: mx.array) -> bytes:
    return np.array(mx.contiguous(array).view(mx.uint8)).tobytes()


def assert_same_weights(got: dict[str, mx.array], wanted: dict[str, mx.array]) -> None:
    assert sorted(got) == sorted(wanted)
    for name, value in wanted.items():
        assert (got[name].dtype, got[name].shape) == (value.dtype, value.shape), name
        assert raw(got[name]) == raw(value), name


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_equal_mlx_lm(family, make_model, octavo, tmp_path, monkeypatch):
    model = make_model(family, dtype="bfloat16")
    done = quantize(octavo, model, tmp_path / "out", "--group-size", 32)
    assert done.returncode == 0, done.stderr
    wanted, config = converted(model, tmp_path / "mlx", monkeypatch, q_bits=4, q_group_size=32)
    assert_same_weights(loaded(tmp_path / "out"), wanted)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["quantization"] == config["quantization"]


@pytest.mark.parametrize("dtype, bits, group_size", [("float32", 4, 64), ("float16", 8, 64), ("bfloat16", 8, 128), ("bfloat16", 4, 64)])
def test_types_bits_and_groups(dtype, bits, group_size, make_model, octavo, tmp_path, monkeypatch):
    """Rows of 192 inputs are not whole groups of 128, so their matrices stay dense. In shards, the tensors are the same."""
    model = make_model("qwen3", dtype=dtype)
    done = quantize(octavo, model, tmp_path / "out", "--bits", bits, "--group-size", group_size, "--max-shard-size", "100KiB")
    assert done.returncode == 0, done.stderr
    wanted, _ = converted(model, tmp_path / "mlx", monkeypatch, q_bits=bits, q_group_size=group_size)
    assert len(list((tmp_path / "out").glob("*.safetensors"))) > 2
    assert_same_weights(loaded(tmp_path / "out"), wanted)


def test_weights_are_cast_to_the_type_of_the_config(make_model, octavo, tmp_path, monkeypatch):
    model = shutil.copytree(make_model("qwen2"), tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"torch_dtype": "bfloat16"}))
    assert quantize(octavo, model, tmp_path / "out").returncode == 0
    wanted, _ = converted(model, tmp_path / "mlx", monkeypatch, q_bits=4, q_group_size=64)
    assert wanted["model.norm.weight"].dtype == mx.bfloat16
    assert_same_weights(loaded(tmp_path / "out"), wanted)


def test_the_copy_runs(make_model, octavo, tmp_path, dump_logits):
    done = quantize(octavo, make_model("llama", dtype="bfloat16"), tmp_path / "out")
    assert done.returncode == 0 and "matrices in 4 bits" in done.stdout
    assert (tmp_path / "out" / "tokenizer.json").exists()
    assert_close(dump_logits(tmp_path / "out", PROMPTS).logits, oracle.folder_logits(tmp_path / "out", PROMPTS), EXACT)


@pytest.mark.parametrize("family, fields, says", [
    ("qwen3", {"format": "mlx"}, "already quantised"),
    ("llama", {"format": "gguf", "gguf_type": "f16"}, "this is a GGUF file"),
    ("qwen3-next", {}, "use mlx_lm.convert"),
    ("deepseek_v3", {}, "use mlx_lm.convert"),
    ("gemma3", {}, "use mlx_lm.convert"),
])
def test_other_models_are_refused_and_nothing_is_left(family, fields, says, make_model, octavo, tmp_path):
    done = quantize(octavo, make_model(family, **fields), tmp_path / "out")
    assert done.returncode == 1 and says in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_not_touched(make_model, octavo, tmp_path):
    (tmp_path / "out").mkdir()
    done = quantize(octavo, make_model("llama"), tmp_path / "out")
    assert done.returncode == 1 and "exists; choose a new folder" in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["out"]
