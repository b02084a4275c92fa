"""Compares the Metal kernels that warm-up compiles with those that steps launch. Nothing is executed, so every family is quick."""

import metal_instances
import pytest
from conftest import run_json
from families import CASES

# Softmax, experts, state, latent and per-layer inputs.
KINDS = ["qwen3", "qwen3_moe", "qwen3.5", "deepseek_v2-lite", "gemma4", "nemotron_h"]


@pytest.fixture(scope="module")
def pipelines(build_dir):
    """pipelines(models, *flags) returns the program's result by model, after checking that steps ran."""

    def run(models, *flags) -> dict:
        found = run_json([build_dir / "tests" / "pipelines", *models, *flags])["models"]
        assert len(found) == len(set(models)) and all(result["launches"] > 1000 for result in found.values()), found
        return found

    return run


def assert_complete(found: dict) -> None:
    """Every launched pipeline was named, and most of the named ones are needed."""
    for model, result in found.items():
        assert not result["missing"], (model, result)
        assert result["used"] > 0.8 * result["named"], (model, result)


def test_steps_launch_only_named_pipelines(make_model, pipelines):
    """For every family, in the file's own type."""
    assert_complete(pipelines([make_model(case.family, **case.recipe) for case in CASES.values()]))


@pytest.mark.parametrize("flags", [("--dtype", "bfloat16"), ("--dtype", "float16", "--seed", 2)], ids=["bfloat16", "float16"])
def test_in_another_type(flags, make_model, pipelines):
    assert_complete(pipelines([make_model(CASES[kind].family) for kind in KINDS], *flags))


def test_int8_pages(make_model, pipelines):
    assert_complete(pipelines([make_model(family) for family in ("qwen3", "gpt_oss", "qwen3.5")], "--kv-dtype", "int8"))


def test_multi_token_prediction(make_model, pipelines):
    assert_complete(pipelines([make_model(family) for family in ("qwen3.5-mtp", "deepseek_v3-mtp")], "--mtp"))


def test_adapters(make_model, pipelines):
    """With LoRA adapters in dense, quantised, fused, gated and hybrid layers, routers, shared experts and output matrices. Their
    memory in the largest step is what the plan counts; rows may share entries of the tables, for which the plan has one per row."""
    models = [make_model("llama"), make_model("qwen3", tied=False, format="mlx", bits=4, group_size=32), make_model("phi3"),
              make_model("qwen3.5"), make_model("deepseek_v2-lite"), make_model("qwen2_moe"), make_model(CASES["gemma4"].family)]
    found = pipelines(models, "--adapters", 3, "--dtype", "bfloat16")
    assert_complete(found)
    for model, result in found.items():
        assert 0.9 * result["adapter_planned"] <= result["adapter_bytes"] <= result["adapter_planned"], (model, result)


def test_a_pipeline_of_adapters_that_is_not_named_is_found(make_model, pipelines):
    model = make_model("llama")
    found = pipelines([model], "--adapters", 2, "--forget", "lora_expand")[str(model)]
    assert len(found["missing"]) == 1 and found["missing"][0].startswith("lora_expand"), found


@pytest.mark.parametrize(
    "kernel", ["linear_rows", "paged_attention", "merge_partials", "qkv_write", "place_tokens", "sample_rows", "top_tokens"]
)
def test_a_pipeline_that_is_not_named_is_found(kernel, make_model, pipelines):
    model = make_model("qwen3")
    found = pipelines([model], "--forget", kernel)[str(model)]
    assert found["missing"] and all(name.startswith(kernel) for name in found["missing"]), found


def test_the_table_of_instances_is_current(build_dir, tmp_path):
    """src/kernels/metal/instances.txt lists what a Mac with Xcode compiles in advance; metal_instances.py collect writes it."""
    lines = metal_instances.named_instances(build_dir / "tests" / "pipelines", tmp_path)
    assert [" ".join(instance) for instance in metal_instances.table()] == lines
