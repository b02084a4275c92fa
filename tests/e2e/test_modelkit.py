"""Checks the tools that make the other tests' checkpoints, without Octavo."""

import subprocess
import sys

import numpy as np
import pytest
from conftest import REPO, prompts_of
from gguf import GGMLQuantizationType as T
from gguf import GGUFReader, quants
from modelkit import FAMILIES, Recipe, gguf_in, gguf_names, kquants, oracle
from modelkit.recipe import hf_config
from modelkit.values import ValueSource, tensors

# Largest error and root mean square error of values from a standard normal distribution.
K_ERRORS = {T.Q4_K: (0.35, 0.08), T.Q5_K: (0.18, 0.04), T.Q6_K: (0.09, 0.02)}


@pytest.mark.parametrize("kind", K_ERRORS, ids=lambda kind: kind.name)
def test_k_quants_come_back(kind):
    values = np.random.default_rng(3).standard_normal((64, 1024)).astype(np.float32)
    back = quants.dequantize(kquants.encode(values, kind), kind)
    largest, mean = K_ERRORS[kind]
    assert back.shape == values.shape
    assert np.abs(back - values).max() < largest
    assert np.sqrt(np.mean((back - values) ** 2)) < mean


@pytest.mark.parametrize("kind", K_ERRORS, ids=lambda kind: kind.name)
def test_k_quants_of_nothing_and_of_one_sign(kind):
    zeros = np.zeros((2, 256), np.float32)
    assert (quants.dequantize(kquants.encode(zeros, kind), kind) == 0).all()
    high = np.random.default_rng(4).uniform(3, 4, (8, 256)).astype(np.float32)
    assert np.abs(quants.dequantize(kquants.encode(high, kind), kind) - high).max() < 4 / 15


@pytest.mark.parametrize("family", FAMILIES)
def test_gguf_holds_the_same_values_and_names_them_all(family, make_model):
    recipe, source = Recipe(family=family), ValueSource(0)
    path = make_model(family, format="gguf", gguf_type="f32")
    found = gguf_in.weights(path)
    assert set(found) == {tensor.name for tensor in tensors(recipe)}
    for tensor in tensors(recipe):
        np.testing.assert_array_equal(found[tensor.name], source.draw(tensor))
    raw = {tensor.name: tensor.data for tensor in GGUFReader(path).tensors}
    moved = not np.array_equal(raw["blk.0.attn_q.weight"], found["model.layers.0.self_attn.q_proj.weight"])
    assert moved == FAMILIES[family].permutes_qk
    assert ("rope_freqs.weight" in raw) == (FAMILIES[family].rope == "llama3")


def test_a_hybrid_gguf_has_a_text_models_tensors_and_a_token_per_row(tmp_path):
    path = tmp_path / "hybrid.gguf"
    command = [sys.executable, REPO / "tools" / "make_hybrid_gguf.py", path, "--family", "qwen3.5", "--type", "q8_0"]
    subprocess.run(command, check=True, capture_output=True)
    reader = GGUFReader(path)
    raw = {tensor.name: tensor for tensor in reader.tensors}
    assert {"token_embd.weight", "blk.0.ssm_out.weight", "blk.3.attn_q.weight"} <= raw.keys()
    assert all(name.startswith(("token_embd", "output", "blk.")) for name in raw)
    assert raw["blk.3.attn_q.weight"].tensor_type == T.Q8_0
    assert len(reader.fields["tokenizer.ggml.tokens"].data) == raw["token_embd.weight"].shape[1]


def test_permutation_undoes_itself():
    rows = np.arange(4 * 32 * 3).reshape(128, 3)
    np.testing.assert_array_equal(gguf_names.unpermute(gguf_names.permute(rows, 4), 4), rows)
    assert gguf_names.permute(rows, 4)[1, 0] == rows[16, 0]  # a pair's second half directly follows the first


@pytest.mark.parametrize("family", FAMILIES)
def test_mlx_lm_loads_what_we_make(family, make_model):
    """Uses mlx-lm's own loader and tokenizer. Except for Mistral's window, the logits must agree with our oracle."""
    from mlx_lm.utils import load

    folder, prompt = make_model(family, shards=2), prompts_of(60)
    model, tokenizer = load(str(folder))
    assert tokenizer.decode(tokenizer.encode("Héllo 123!", add_special_tokens=False)) == "Héllo 123!"
    np.testing.assert_allclose(
        oracle.logits(model, prompt)[0], oracle.folder_logits(folder, prompt)[0], atol=1e-5)


def test_mlx_lm_ignores_mistrals_window(make_model):
    """The reason why the oracle has its own mask. If this fails, mlx-lm supports the window and the oracle can be simpler."""
    folder, prompts = make_model("mistral"), prompts_of(100)
    model = oracle.load(hf_config(Recipe(family="mistral")), oracle.folder_weights(folder))
    unmasked, windowed = oracle.logits(model, prompts)[0], oracle.folder_logits(folder, prompts)[0]
    np.testing.assert_allclose(unmasked[:64], windowed[:64], atol=1e-5)
    assert np.abs(unmasked[64:] - windowed[64:]).max() > 0.1


@pytest.mark.parametrize("fields", [
    dict(bits=3, group_size=32), dict(mixed=True), dict(mixed=True, tied=False), dict(mode="mxfp4", group_size=32),
], ids=str)
def test_mlx_lm_loads_our_quantised_forms(fields, make_model):
    """mlx-lm's quantised layers and our dequantised oracle give the same logits."""
    from mlx_lm.utils import load_model

    folder, prompt = make_model("qwen3", shape="tiny-k", format="mlx", **fields), prompts_of(20)
    model, _ = load_model(folder)
    np.testing.assert_allclose(
        oracle.logits(model, prompt)[0], oracle.folder_logits(folder, prompt)[0], atol=1e-4)
