"""One tiny model in every supported format, each with its own loading path.

There are two comparisons per format. Exact: Octavo against mlx-lm on the format's weights, decoded by MLX or by the gguf
package; the weights are identical, so EXACT covers only rounding. Loose: the cosine of the logits with those of the dense
original; the bound is slightly below the cosine that the format's own error causes (measured with mlx-lm)."""

import functools

import pytest
from conftest import assert_close, cosine, prompts_of, run_json
from modelkit import Recipe, oracle
from modelkit.recipe import hf_config

EXACT = 1e-3
PROMPTS = prompts_of(5, 70)
SHAPE = "tiny-k"  # rows are multiples of 256, as required by K blocks and groups of 128
FAMILIES = ["llama", "qwen3"]  # with and without permuted q and k rows in GGUF

MLX_LIKENESS = {2: 0.25, 3: 0.70, 4: 0.88, 5: 0.97, 6: 0.99, 8: 0.999}
GGUF_LIKENESS = {
    "f32": 0.99999, "f16": 0.99999, "bf16": 0.9999, "q8_0": 0.999, "q6_k": 0.99, "q5_k": 0.97, "q5_0": 0.97,
    "q5_1": 0.97, "q4_k": 0.90, "q4_k_m": 0.90, "q4_0": 0.90, "q4_1": 0.90,
}
# One family: they share the loader of the types above.
SMALL_LIKENESS = {
    "mxfp4": 0.85, "iq4_nl": 0.90, "iq4_xs": 0.90, "q3_k": 0.60, "iq3_s": 0.60, "iq3_xxs": 0.5, "q2_k": 0.2, "iq2_s": 0.2,
    "iq2_xs": 0.2, "iq2_xxs": 0.1,
}


@functools.cache
def dense_logits(folder):
    return oracle.folder_logits(folder, PROMPTS)


@pytest.fixture
def original(make_model):
    """original(family) returns mlx-lm's logits of the dense float32 checkpoint."""
    return lambda family, **fields: dense_logits(make_model(family, shape=SHAPE, **fields))


def check(got, exact, original, likeness):
    assert_close(got, exact, EXACT)
    assert cosine(got, original) > likeness


@pytest.mark.parametrize("family", FAMILIES)
def test_dense(family, make_model, dump_logits, original):
    got = dump_logits(make_model(family, shape=SHAPE), PROMPTS).logits
    assert_close(got, original(family), 1e-4)


@pytest.mark.parametrize("group_size", [32, 64, 128])
@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_mlx_affine(bits, group_size, make_model, dump_logits, original):
    model = make_model("qwen3", shape=SHAPE, format="mlx", bits=bits, group_size=group_size)
    got = dump_logits(model, PROMPTS).logits
    check(got, oracle.folder_logits(model, PROMPTS), original("qwen3"), MLX_LIKENESS[bits])


MLX_OTHERS = {
    "mxfp4": (dict(family="qwen3", mode="mxfp4", group_size=32), 0.85),
    "mixed-tied": (dict(family="qwen3", mixed=True), 0.88),
    "mixed-untied": (dict(family="llama", mixed=True), 0.88),
    "half-scales": (dict(family="llama", dtype="bfloat16"), 0.88),
    "float16-scales-shards": (dict(family="qwen2", dtype="float16", shards=2), 0.88),
    "biases": (dict(family="llama", biases=True), 0.88),
}


@pytest.mark.parametrize("fields, likeness", MLX_OTHERS.values(), ids=MLX_OTHERS)
def test_mlx_variants(fields, likeness, make_model, dump_logits, original):
    """mxfp4; per-layer overrides (8 bits and dense next to 4 bits); scales in half precision, run in float32."""
    model = make_model(shape=SHAPE, format="mlx", **fields)
    got = dump_logits(model, PROMPTS, dtype="float32").logits
    same = {k: v for k, v in fields.items() if k in ("family", "biases")}
    check(got, oracle.folder_logits(model, PROMPTS), original(**same), likeness)


GGUF_CASES = [(kind, family) for kind in GGUF_LIKENESS for family in FAMILIES] + [(kind, "qwen3") for kind in SMALL_LIKENESS]


@pytest.mark.parametrize("kind, family", GGUF_CASES)
def test_gguf(kind, family, make_model, dump_logits, original):
    model = make_model(family, shape=SHAPE, format="gguf", gguf_type=kind)
    got = dump_logits(model, PROMPTS).logits
    exact = oracle.gguf_logits(model, hf_config(Recipe(family=family, shape=SHAPE)), PROMPTS)
    check(got, exact, original(family), (GGUF_LIKENESS | SMALL_LIKENESS)[kind])


def test_gguf_falls_back_on_narrow_rows(make_model, dump_logits):
    """288 is not a multiple of 256, so llama.cpp stores such rows as Q5_0 and Q8_0 in a Q4_K_M file (as for SmolLM2)."""
    model = make_model("smollm2", format="gguf", gguf_type="q4_k_m")
    exact = oracle.gguf_logits(model, hf_config(Recipe(family="smollm2")), PROMPTS)
    assert_close(dump_logits(model, PROMPTS).logits, exact, EXACT)


def test_the_three_forms_agree(make_model, dump_logits):
    """Dense, 4-bit MLX and Q4_K_M versions of the same model, all run by Octavo."""
    dense = dump_logits(make_model("llama", shape=SHAPE), PROMPTS).logits
    mlx = dump_logits(make_model("llama", shape=SHAPE, format="mlx", bits=4), PROMPTS).logits
    gguf = dump_logits(make_model("llama", shape=SHAPE, format="gguf", gguf_type="q4_k_m"), PROMPTS).logits
    assert cosine(dense, mlx) > 0.88
    assert cosine(dense, gguf) > 0.90
    assert cosine(mlx, gguf) > 0.80


@pytest.mark.parametrize("rows", [1, 128, 512])
def test_step_peak_is_inside_the_plan(rows, make_model, octavo):
    """The plan, computed from shapes, bounds the memory that MLX used in the largest step."""
    model = make_model("llama", shape="medium", format="gguf", gguf_type="q4_k_m")
    memory = run_json([octavo, "generate", model, "--raw", "-p", "The sea. " * 80, "--max-tokens", "2", "--json",
                       "--max-num-batched-tokens", rows])["memory"]
    assert 0 < memory["step_peak_bytes"] <= memory["plan"]["step_bytes"]


@pytest.mark.parametrize("family, form", [("qwen3_moe", {}), ("qwen3_moe-mlx", {"format": "mlx", "group_size": 32}),
                                          ("mixtral-mlx", {}), ("gpt_oss", {}), ("gpt_oss-mlx", {})])
def test_experts_take_what_the_plan_says(family, form, make_model, octavo):
    """The plan counts packed strips and units for stacked experts, experts in blocks and one module per expert."""
    model = make_model(family, **form)
    memory = run_json([octavo, "generate", model, "--raw", "-p", "The sea", "--max-tokens", "1", "--json"])["memory"]
    assert memory["weights_bytes"] == pytest.approx(memory["plan"]["weights_bytes"], rel=0.01)


def test_resident_memory(make_model, octavo):
    """Loading a quantised file takes the file's size and the planned extras, not a dequantised copy (seven times as
    much). What any load takes (the program's own code, read when it first runs) is left out: a tiny model's load."""
    def load(shape):
        model = make_model("llama", shape=shape, format="gguf", gguf_type="q4_k_m")
        return model.stat().st_size, run_json([octavo, "generate", model, "--raw", "-p", "The sea", "--max-tokens", "1",
                                               "--json"])["memory"]

    size, memory = load("medium")
    tiny_size, tiny = load(SHAPE)
    assert memory["resident_after_load_bytes"] <= 1.15 * size + memory["plan"]["extras_bytes"]
    growth, tiny_growth = (m["resident_after_load_bytes"] - m["resident_before_load_bytes"] for m in (memory, tiny))
    assert growth - tiny_growth <= 1.15 * (size - tiny_size)
    assert memory["weights_bytes"] <= 1.15 * size
