"""AWQ, GPTQ, compressed-tensors and FP8 checkpoints: the same logits as the dense checkpoint with the same values, a memory plan
that is right, and refusals that name the problem.

Weights and their dense form are equal numbers, so TOLERANCE covers only the order of sums."""

import json
import subprocess

import numpy as np
import pytest
import quantized_files as qf
from conftest import assert_close, cosine, prompts_of, run_json

TOLERANCE = 1e-4
PROMPTS = prompts_of(5, 70)


def whole_groups_moved(cols: int) -> np.ndarray:
    """The group of each input if groups of 128 are in another order."""
    return np.repeat(np.arange(cols // 128)[::-1], 128)


def in_order_of_activation(cols: int) -> np.ndarray:
    return np.random.default_rng(3).permutation(np.arange(cols) // 128)


FORMATS = {
    "awq-128": qf.awq(128),
    "awq-64": qf.awq(64),
    "awq-channel": qf.awq(-1),
    "gptq-4-sym": qf.gptq(4, 128, True),
    "gptq-4-asym": qf.gptq(4, 128, False),
    "gptq-4-v2": qf.gptq(4, 64, False, "gptq_v2"),
    "gptq-8": qf.gptq(8, 128, True),
    "gptq-3": qf.gptq(3, 128, False),
    "gptq-2": qf.gptq(2, 32, False),
    "gptq-channel-act-order": qf.gptq(4, -1, True, order=lambda cols: np.zeros(cols, int)),
    "gptq-groups-moved": qf.gptq(4, 128, True, order=whole_groups_moved),
    "compressed-w4-128": qf.compressed_packed(4, 128, True),
    "compressed-w4-asym": qf.compressed_packed(4, 128, False),
    "compressed-w4-channel": qf.compressed_packed(4, -1, True),
    "compressed-w8-128": qf.compressed_packed(8, 128, True),
    "compressed-w8-asym-channel": qf.compressed_packed(8, -1, False),
    "compressed-int8": qf.compressed_bytes(True),
    "compressed-int8-asym": qf.compressed_bytes(False, 64),
    "compressed-fp8-channel": qf.compressed_fp8("channel"),
    "compressed-fp8-tensor": qf.compressed_fp8("tensor"),
    "compressed-fp8-block": qf.compressed_fp8("block"),
    "fp8-block": qf.fp8((128, 128), ".weight_scale_inv", qf.fp8_section(weight_block_size=[128, 128])),
    "fp8-block-powers": qf.fp8((128, 128), ".weight_scale_inv", qf.fp8_section(weight_block_size=[128, 128], scale_fmt="ue8m0"), True),
    "fp8-tensor": qf.fp8(None, ".weight_scale", qf.fp8_section(), shape=lambda scales: scales.reshape(())),
}


@pytest.fixture
def made(make_model, tmp_path):
    """made(format, family, **recipe fields) returns the quantised checkpoint and the dense one with its values."""

    def make(form: qf.Format, family: str = "qwen3", shape: str = "tiny-k", chooses=qf.is_linear):
        return qf.make(make_model(family, shape=shape), tmp_path, form, chooses)

    return make


@pytest.mark.parametrize("name", FORMATS)
def test_logits_equal_the_dequantised_model(name, made, dump_logits):
    quantised, dense = made(FORMATS[name])
    got = dump_logits(quantised, PROMPTS).logits
    wanted = dump_logits(dense, PROMPTS).logits
    assert_close(got, wanted, TOLERANCE)


@pytest.mark.parametrize("name", ["awq-128", "gptq-4-sym", "compressed-int8-asym", "fp8-block"])
def test_other_kernels_and_types(name, made, dump_logits):
    quantised, dense = made(FORMATS[name])
    wanted = dump_logits(dense, PROMPTS).logits
    assert_close(dump_logits(quantised, PROMPTS, kernels="reference").logits, wanted, TOLERANCE)
    assert cosine(dump_logits(quantised, PROMPTS, dtype="bfloat16").logits, wanted) > 0.999


@pytest.mark.parametrize("family, name, chooses", [
    ("llama", "awq-128", lambda name: name.endswith("_proj.weight") and ".layers.1." not in name),  # modules_to_not_convert
    ("llama", "gptq-4-sym", lambda name: qf.is_linear(name) or name == "lm_head.weight"),
    ("qwen2", "awq-64", qf.is_linear),  # biases
], ids=["some-modules-dense", "quantised-head", "biases"])
def test_other_choices_of_modules(family, name, chooses, made, dump_logits):
    quantised, dense = made(FORMATS[name], family, chooses=chooses)
    assert_close(dump_logits(quantised, PROMPTS).logits, dump_logits(dense, PROMPTS).logits, TOLERANCE)


@pytest.mark.parametrize("form", [qf.awq(64), qf.compressed_packed(4, 64, True), FORMATS["fp8-block"]],
                         ids=["awq", "compressed", "fp8"])
def test_experts(form, made, dump_logits):
    quantised, dense = made(form, "qwen3_moe", "tiny")
    assert_close(dump_logits(quantised, PROMPTS).logits, dump_logits(dense, PROMPTS).logits, TOLERANCE)


def test_fused_matrices_are_split(made, dump_logits):
    quantised, dense = made(qf.awq(64), "phi3", "tiny")
    assert_close(dump_logits(quantised, PROMPTS).logits, dump_logits(dense, PROMPTS).logits, TOLERANCE)


@pytest.mark.parametrize("name, says", [
    ("awq-128", "awq 4-bit in groups of 128"),
    ("gptq-4-sym", "gptq 4-bit in groups of 128"),
    ("compressed-w8-128", "compressed-tensors 8-bit in groups of 128"),
    ("compressed-int8", "compressed-tensors 8-bit with one scale per channel"),
    ("fp8-block", "fp8 in blocks of 128 x 128"),
    ("fp8-block-powers", "fp8 in blocks of 128 x 128"),
])
def test_info_names_the_quantisation_and_the_plan_is_right(name, says, made, octavo):
    quantised, _ = made(FORMATS[name])
    assert run_json([octavo, "info", quantised, "--json"])["quantization"] == says
    memory = run_json([octavo, "generate", quantised, "--raw", "-p", "The sea", "--max-tokens", "1", "--json"])["memory"]
    assert memory["weights_bytes"] == pytest.approx(memory["plan"]["weights_bytes"], rel=0.01)


def change_section(folder, **values) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["quantization_config"] |= values
    path.write_text(json.dumps(config))


def change_tensors(folder, change) -> None:
    path = folder / "model.safetensors"
    tensors = qf.read_safetensors(path)
    change(tensors)
    qf.write_safetensors(path, tensors)


AT = "model.layers.2.mlp.up_proj"


def drop(suffix):
    return lambda tensors: tensors.pop(AT + suffix)


def replace(suffix, value):
    return lambda tensors: tensors.update({AT + suffix: value})


def wrong_group(tensors):
    tensors[f"{AT}.g_idx"].bits[5] = 99


CORRUPT = {
    "missing-zeros": ("awq-128", {}, drop(".qzeros"), f'"{AT}.qweight" has no .qzeros tensor'),
    "missing-scales": ("gptq-4-sym", {}, drop(".scales"), f'"{AT}.qweight" has no .scales tensor'),
    "wrong-codes": ("awq-128", {}, replace(".qweight", np.zeros((256, 32), np.int32)), f'"{AT}.qweight" has shape [256, 32]'),
    "wrong-scales": ("gptq-4-sym", {}, replace(".scales", np.zeros((3, 512), np.float16)), f"{AT}.qzeros"),
    "wrong-type": ("awq-128", {}, replace(".qzeros", np.zeros((2, 64), np.float32)), "has type F32, expected I32"),
    "bad-group": ("gptq-4-sym", {}, wrong_group, f'"{AT}.g_idx" names group 99 of 2'),
    "act-order": ("gptq-4-sym", {}, replace(".g_idx", in_order_of_activation(256).astype(np.int32)), "act-order, desc_act"),
    "not-symmetric": ("gptq-4-asym", {"sym": True}, None, "but the config says sym"),
    "bytes-without-zeros": ("compressed-int8-asym", {}, drop(".weight_zero_point"), "has no zero points"),
    "not-powers": ("fp8-tensor", {"scale_fmt": "ue8m0"}, None, "means powers of two"),
    "no-scale": ("fp8-tensor", {}, drop(".weight_scale"), f'"{AT}.weight" has no .weight_scale_inv tensor'),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_a_damaged_checkpoint_is_refused_by_name(name, made, octavo):
    form, section, change, says = CORRUPT[name]
    quantised, _ = made(FORMATS[form])
    change_section(quantised, **section)
    if change:
        change_tensors(quantised, change)
    for command in (["info", quantised], ["generate", quantised, "--raw", "-p", "The", "--max-tokens", "1"]):
        done = subprocess.run([octavo, *command], capture_output=True, text=True, timeout=120)
        assert done.returncode == 1 and says in done.stderr, done
