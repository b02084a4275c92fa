"""GGUF's block formats, bit by bit: what Octavo packs stands for the numbers that llama.cpp decodes."""

import subprocess

import numpy as np
import pytest
from conftest import run_json
from gguf import GGML_QUANT_SIZES
from gguf import GGMLQuantizationType as T
from modelkit import ggml

KINDS = [T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K, T.MXFP4, T.IQ4_NL, T.IQ4_XS,
         T.IQ3_S, T.IQ3_XXS, T.IQ2_S, T.IQ2_XS, T.IQ2_XXS]
ROWS, COLUMNS = 37, 768
NAMES = {T.MXFP4: "mxfp4_gguf"}


@pytest.fixture
def decode(build_dir):
    def run(kind: T, blocks: np.ndarray) -> np.ndarray:
        program = build_dir / "tests" / "decode_weights"
        done = subprocess.run([program, NAMES.get(kind, kind.name.lower()), str(COLUMNS)], input=blocks.tobytes(),
                              stdout=subprocess.PIPE, check=True, timeout=60)
        return np.frombuffer(done.stdout, np.float32).reshape(len(blocks), COLUMNS)

    return run


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_blocks_stand_for_llama_cpps_numbers(kind, decode):
    """Blocks that llama.cpp's quantiser writes, then random bytes: infinite, NaN and tiny scales included."""
    random = np.random.default_rng(kind.value)
    made = ggml.quantize(random.standard_normal((ROWS, COLUMNS), np.float32), kind)
    block, block_bytes = GGML_QUANT_SIZES[kind]
    noise = random.integers(0, 256, (8 * ROWS, COLUMNS // block * block_bytes), np.uint8)
    blocks = np.concatenate([made, noise])
    want, got = ggml.dequantize(blocks, kind), decode(kind, blocks)
    assert np.abs(want[:ROWS]).max() > 1  # not all zeros
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    finite = ~np.isnan(want)
    np.testing.assert_array_equal(got.view(np.uint32)[finite], want.view(np.uint32)[finite])


@pytest.mark.parametrize("kind", ["q2_k", "q3_k", "mxfp4", "iq4_xs", "iq2_xxs"])
def test_weights_take_what_the_plan_and_info_say(kind, make_model, octavo):
    model = make_model("qwen3", shape="tiny-k", format="gguf", gguf_type=kind)
    memory = run_json([octavo, "generate", model, "--raw", "-p", "The sea", "--max-tokens", "1", "--json"])["memory"]
    assert memory["weights_bytes"] == pytest.approx(memory["plan"]["weights_bytes"], rel=0.02)
    info = run_json([octavo, "info", model, "--json"])
    assert info["memory"]["weights_bytes"] == memory["plan"]["weights_bytes"]
    growth = memory["weights_bytes"] / sum(info["stored_bytes"].values())
    assert growth < (1.65 if kind == "iq2_xxs" else 1.06)
    shown = subprocess.run([octavo, "info", model], capture_output=True, text=True, check=True, timeout=60).stdout
    assert f"{abs(growth - 1) * 100:.1f}% " in shown
