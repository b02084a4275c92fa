"""Compares Octavo's logits with mlx-lm's, for every family and every setting of its config.

All run in float32 on random tiny checkpoints whose logits have a standard deviation of about one. TOLERANCE is the largest
allowed absolute difference at any position of any prompt."""

import functools

import numpy as np
import pytest
from conftest import assert_close, cosine, prompts_of
from modelkit import oracle

TOLERANCE = 1e-4
SAME = 1e-5  # for two paths in Octavo that compute the same sums in another order
PROMPTS = prompts_of(1, 7, 64, 300)
BLOCK_TOKENS = [8, 16, 32, 48, 160, 544]

CASES = {
    "llama": dict(family="llama"),
    "llama-rope-none": dict(family="llama", rope="none"),
    "llama-rope-linear": dict(family="llama", rope="linear"),
    "llama-rope-yarn": dict(family="llama", rope="yarn"),
    "llama-biases": dict(family="llama", biases=True),
    "llama-head-dim": dict(family="llama", head_dim=64),
    "llama-tied": dict(family="llama-tied"),
    "smollm2": dict(family="smollm2"),
    "smollm3": dict(family="smollm3"),
    "smollm3-interval": dict(family="smollm3", no_rope_list=False),
    "mistral-window": dict(family="mistral"),
    "qwen2": dict(family="qwen2"),
    "qwen2-untied-shards": dict(family="qwen2", tied=False, shards=3),
    "qwen3": dict(family="qwen3"),
    "qwen3-untied": dict(family="qwen3", tied=False),
}
# One of each architecture, for tests that do not depend on the config's settings.
FAMILIES = ["llama", "smollm3", "mistral-window", "qwen2", "qwen3"]


@functools.cache
def oracle_logits(folder):
    return oracle.folder_logits(folder, PROMPTS)


@pytest.fixture
def model(request, make_model):
    return make_model(**CASES[request.param])


@pytest.mark.parametrize("block_tokens", BLOCK_TOKENS)
@pytest.mark.parametrize("model", CASES, indirect=True)
def test_logits_equal_mlx_lm(model, block_tokens, dump_logits):
    got = dump_logits(model, PROMPTS, block_tokens=block_tokens)
    assert_close(got.logits, oracle_logits(model), TOLERANCE)


@pytest.mark.parametrize("model", FAMILIES, indirect=True)
def test_reference_kernels_equal_mlx_lm(model, dump_logits):
    got = dump_logits(model, PROMPTS, kernels="reference")
    assert_close(got.logits, oracle_logits(model), TOLERANCE)


@pytest.mark.parametrize("model", FAMILIES, indirect=True)
def test_native_kernels_equal_reference(model, dump_logits):
    native = dump_logits(model, PROMPTS, block_tokens=32)
    reference = dump_logits(model, PROMPTS, block_tokens=32, kernels="reference")
    assert_close(native.logits, reference.logits, SAME)


@pytest.mark.parametrize("chunk", [7, 64])
@pytest.mark.parametrize("model", FAMILIES, indirect=True)
def test_chunked_prefill_equals_whole(model, chunk, dump_logits):
    whole = dump_logits(model, PROMPTS)
    chunked = dump_logits(model, PROMPTS, chunk=chunk)
    assert sum(chunked.launches.values()) > sum(whole.launches.values()), "nothing was chunked"
    assert_close(chunked.logits, whole.logits, SAME)


@pytest.mark.parametrize("kernels", ["native", "reference"])
@pytest.mark.parametrize("model", FAMILIES, indirect=True)
def test_batch_equals_alone(model, kernels, dump_logits):
    alone = dump_logits(model, PROMPTS, kernels=kernels)
    batch = dump_logits(model, PROMPTS, kernels=kernels, batch=True)
    assert sum(batch.launches.values()) < sum(alone.launches.values()), "the prompts did not share a step"
    assert_close(batch.logits, alone.logits, SAME)


EIGHT = prompts_of(1, 2, 17, 33, 64, 100, 129, 300, seed=2)


@pytest.mark.parametrize("model", FAMILIES, indirect=True)
def test_eight_mixed_sequences_equal_each_alone(model, dump_logits):
    """Runs steps of 16 rows per sequence, so that one call has prefill chunks and single rows far into a sequence."""
    alone = dump_logits(model, EIGHT)
    mixed = dump_logits(model, EIGHT, chunk=16, batch=True)
    reference = dump_logits(model, EIGHT, chunk=16, batch=True, kernels="reference")
    assert_close(mixed.logits, reference.logits, SAME)
    assert_close(mixed.logits, alone.logits, SAME)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("model", FAMILIES, indirect=True)
def test_bits_depend_on_the_sequence_only(model, dtype, dump_logits):
    """They do not depend on other sequences, chunks or the page size."""
    alone = dump_logits(model, EIGHT, dtype=dtype).logits
    for options in [dict(batch=True), dict(chunk=1), dict(chunk=16, batch=True), dict(block_tokens=48, chunk=100)]:
        other = dump_logits(model, EIGHT, dtype=dtype, **options).logits
        assert all(np.array_equal(a, b) for a, b in zip(alone, other)), options


@pytest.mark.parametrize("model", CASES, indirect=True)
def test_gguf_f32_equals_safetensors(model, request, make_model, dump_logits):
    case = CASES[request.node.callspec.params["model"]] | {"shards": 1}
    gguf = make_model(**case, format="gguf", gguf_type="f32")
    assert_close(dump_logits(gguf, PROMPTS).logits, dump_logits(model, PROMPTS).logits, SAME)


@pytest.mark.parametrize("block_tokens", [16])
def test_window_of_mistral_is_not_ignored(block_tokens, make_model, dump_logits):
    """Checks the test itself: with a window longer than the prompt, the logits must differ."""
    short = dump_logits(make_model("mistral"), PROMPTS, block_tokens=block_tokens).logits[3]
    long = dump_logits(make_model("mistral", window=4096), PROMPTS, block_tokens=block_tokens).logits[3]
    assert_close([short[:64]], [long[:64]], SAME)
    assert abs(short[64:] - long[64:]).max() > 0.1


@pytest.mark.parametrize("dtype, error, likeness", [("bfloat16", 0.25, 0.9995), ("float16", 0.03, 0.99999)])
@pytest.mark.parametrize("family", ["llama", "smollm2", "smollm3", "mistral", "qwen2", "qwen3"])
def test_half_checkpoints(family, dtype, error, likeness, make_model, dump_logits):
    """A 16-bit checkpoint run in float32 equals mlx-lm in float32, and is close to it in its own dtype: `error` bounds the
    difference of any logit, `likeness` the cosine of a prompt's logits."""
    model = make_model(family, dtype=dtype)
    wanted = oracle_logits(model)
    assert_close(dump_logits(model, PROMPTS, dtype="float32").logits, wanted, TOLERANCE)
    own = dump_logits(model, PROMPTS, dtype=None).logits
    assert_close(own, wanted, error)
    assert cosine(own, wanted) > likeness
