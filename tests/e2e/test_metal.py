"""Runs whole models through the Metal kernels in the simulator, with the host code and kernel sources that run on a Mac.

docs/metal.md lists the simulator's limits. OCTAVO_SLOW_TESTS=1 runs every family's cases."""

import functools

import numpy as np
import pytest
from conftest import assert_close, prompts_of, run_json
from families import CASES
from modelkit import adapters, oracle
from slow_tests import SLOW, repeats

TOLERANCE = 3e-4  # of a logit, all in float32; the CPU kernels' is 1e-4, but sums have another order here
PROMPTS = prompts_of(1, 9, 40)
# Softmax, state and latent layers, for the slower tests.
KINDS = ["qwen3", "qwen3.5", "deepseek_v2-lite"]


@functools.cache
def oracle_logits(folder):
    return oracle.folder_logits(folder, PROMPTS)


# Covers each kind of layer and the main settings; all cases would take minutes.
IN_CI = ["qwen3", "llama-biases", "smollm2", "gpt_oss", "deepseek_v3-mlx", "qwen3.5", "qwen3.5-moe-mlx", "lfm2", "gemma4", "mixtral",
         "nemotron_h"]


@pytest.fixture(params=CASES if SLOW else IN_CI)
def model(request, make_model):
    case = CASES[request.param]
    return make_model(case.family, **case.recipe)


def test_logits(model, dump_logits):
    assert_close(dump_logits(model, PROMPTS, kernels="metal", batch=True).logits, oracle_logits(model), TOLERANCE)


@pytest.fixture(params=KINDS)
def one_of_a_kind(request, make_model):
    return make_model(request.param)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"] if SLOW else ["bfloat16"])
def test_bits_depend_on_the_sequence_only(one_of_a_kind, dtype, dump_logits):
    """They do not depend on other sequences, chunks or the page size, if rows of a matrix product are independent, as here."""
    alone = dump_logits(one_of_a_kind, PROMPTS, dtype=dtype, kernels="metal").logits
    other = dump_logits(one_of_a_kind, PROMPTS, dtype=dtype, kernels="metal", block_tokens=48, chunk=7, batch=True).logits
    assert all(np.array_equal(a, b) for a, b in zip(alone, other))


def test_a_request_has_its_bits_in_company(one_of_a_kind, build_dir):
    """Runs the whole engine with a pool for three of five sequences. Nothing is preempted in so few tokens."""
    result = run_json([build_dir / "tests" / "needle", one_of_a_kind, "--metal", "--dtype", "bfloat16", "--trials", 1, "--tokens", 3,
                       "--neighbours", 4, "--longest", repeats(8, 40), "--pool-sequences", 3])
    assert result["needles"] == 2 and result["mismatches"] == 0, result
    assert any(kernel in result["launches"] for kernel in ("linear_rows.metal", "integer_vector.metal")), result
    assert "linear.cpu" not in result["launches"], result


# The base model and two adapters, in an order that divides the rows of each.
ADAPTER_PROMPTS = prompts_of(9, 1, 12, 4, 3, 2, seed=3)
ADAPTER_OF = [0, -1, 1, 0, -1, 1]


@pytest.fixture
def two_adapters(make_adapter):
    """two_adapters(model) returns the folders and descriptions of an adapter of every module and one of attention and the output."""

    def make(model):
        return [make_adapter(model, seed=1, rank=8, vocabulary=("lm_head",)),
                make_adapter(model, seed=2, rank=5, modules=adapters.ATTENTION, vocabulary=("lm_head",), dtype="bfloat16")]

    return make


def test_logits_of_mixed_adapters(make_model, two_adapters, dump_logits):
    """The reference, the CPU and Metal agree with PEFT's definition, with rows of the base model in the same step."""
    model = make_model("llama", tied=False)
    made = two_adapters(model)
    by_slot = {slot: oracle.folder_logits(model, ADAPTER_PROMPTS, weights=adapters.merged_weights(model, *made[slot]))
               for slot in range(2)} | {-1: oracle.folder_logits(model, ADAPTER_PROMPTS)}
    wanted = [by_slot[slot][n] for n, slot in enumerate(ADAPTER_OF)]
    assert np.abs(by_slot[0][0] - by_slot[-1][0]).max() > 100 * TOLERANCE  # the adapters matter
    assert np.abs(by_slot[1][2] - by_slot[-1][2]).max() > 100 * TOLERANCE
    for kernels, launched in (("reference", "lora.reference"), ("native", "lora.cpu"), ("metal", "lora_expand.metal")):
        found = dump_logits(model, ADAPTER_PROMPTS, kernels=kernels, batch=True, adapters=[folder for folder, _ in made],
                            adapter_of=ADAPTER_OF)
        assert found.launches[launched] > 0
        assert_close(found.logits, wanted, TOLERANCE)


@pytest.mark.parametrize("recipe", [{"format": "mlx", "bits": 4, "group_size": 32}] + ([{}] if SLOW else []))
def test_bits_of_mixed_adapters(make_model, two_adapters, dump_logits, recipe):
    """A row's bits depend neither on the adapters of other rows nor on the batch, and the base model's are those without LoRA."""
    model = make_model("qwen3", tied=False, **recipe)
    folders = [folder for folder, _ in two_adapters(model)]
    how = {"dtype": "bfloat16", "kernels": "metal"}
    mixed = dump_logits(model, ADAPTER_PROMPTS, adapters=folders, adapter_of=ADAPTER_OF, batch=True, **how).logits
    chunks = dump_logits(model, ADAPTER_PROMPTS, adapters=folders, adapter_of=ADAPTER_OF, batch=True, chunk=7, block_tokens=48,
                         **how).logits
    base = dump_logits(model, ADAPTER_PROMPTS, **how).logits
    for slot in range(-1, 2):
        own = [n for n in range(len(ADAPTER_PROMPTS)) if ADAPTER_OF[n] == slot]
        alone = [base[n] for n in own] if slot < 0 else dump_logits(
            model, [ADAPTER_PROMPTS[n] for n in own], adapters=[folders[slot]], adapter_of=[0] * len(own), **how).logits
        for n, wanted in zip(own, alone):
            assert np.array_equal(mixed[n].view(np.uint32), wanted.view(np.uint32)), (slot, n)
            assert np.array_equal(chunks[n].view(np.uint32), wanted.view(np.uint32)), (slot, n)
            assert (slot < 0) == np.array_equal(mixed[n], base[n]), (slot, n)
