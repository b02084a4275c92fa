"""LoRA adapters of experts, routers and shared experts: logits against mlx-lm and PEFT's definition, bits of mixed batches, refusals,
and the server's flag.

All run on random tiny checkpoints. Logits are compared in float32; bits in every type."""

import json
import subprocess
import urllib.request

import mlx.core as mx
import numpy as np
import pytest
import running_server
from conftest import assert_close, prompts_of
from gguf import GGMLQuantizationType
from modelkit import adapters, oracle
from safetensors.numpy import save_file
from test_gguf_experts import write as write_gguf

TOLERANCE = 1e-4
PROMPTS = prompts_of(1, 7, 70)
QUANTIZED = {"format": "mlx", "bits": 4, "group_size": 32}
MODULES = (*adapters.ALL, *adapters.EXPERTS)
WITH_ROUTERS = (*MODULES, *adapters.ROUTERS)
SHARED = dict(modules=(*adapters.ALL, *adapters.ROUTERS), within=r"self_attn|shared_expert|mlp\.gate$")


def with_adapter(dump_logits, model, folder, **how):
    how = {"lora_experts": True} | how
    return dump_logits(model, PROMPTS, adapters=[folder], adapter_of=[0] * len(PROMPTS), **how)


# mlx-lm has no LoRA of DeepSeek's routers, nor have we of latent attention.
@pytest.mark.parametrize("family, recipe, fields", [
    ("qwen3_moe", {}, {"modules": WITH_ROUTERS}),
    ("qwen3_moe-mlx", QUANTIZED, {"modules": MODULES, "rank": 24}),
    ("qwen2_moe", {}, {"modules": WITH_ROUTERS}),
    ("mixtral", {}, {"modules": WITH_ROUTERS}),
    ("deepseek_v3", {}, {"modules": MODULES, "within": r"\.mlp\."}),
    ("nemotron_h-mlx", QUANTIZED, {"modules": MODULES, "within": "switch_mlp|shared_experts"}),
    ("gpt_oss-mlx", {}, {"modules": (*MODULES, "router")}),
    ("gemma4-moe", {}, {"modules": (*adapters.ALL, "proj"), "within": r"self_attn|mlp|router"}),
])
def test_logits_equal_mlx_lm(make_model, make_adapter, dump_logits, family, recipe, fields):
    model = make_model(family, **recipe)
    folder, _ = make_adapter(model, form="mlx", **fields)
    wanted = oracle.folder_logits(model, PROMPTS, adapter=folder)
    found = with_adapter(dump_logits, model, folder)
    assert_close(found.logits, wanted, TOLERANCE)
    assert np.abs(wanted[2] - dump_logits(model, PROMPTS).logits[2]).max() > 100 * TOLERANCE  # the adapter matters
    assert ("expert_lora.cpu" in found.launches) == (family != "gemma4-moe")


@pytest.mark.parametrize("family, fields", [
    ("qwen3_moe", {"modules": WITH_ROUTERS, "rank_pattern": {"experts.3.up_proj": 4, "mlp.gate": 2}}),
    ("qwen2_moe", {"modules": adapters.EXPERTS, "within": r"experts\.(0|5|11)\.", "rslora": True}),  # only some experts
    ("deepseek_v2-lite", {"modules": (*MODULES, "gate"), "within": r"\.mlp\."}),
    ("lfm2_moe", {"modules": WITH_ROUTERS, "within": r"feed_forward\.(experts|gate)"}),
])
def test_logits_equal_the_definition_of_peft(make_model, make_adapter, dump_logits, family, fields):
    model = make_model(family, **({"seed": 1} if family == "lfm2_moe" else {}))
    folder, adapter = make_adapter(model, **fields)
    wanted = oracle.folder_logits(model, PROMPTS, weights=adapters.merged_weights(model, folder, adapter))
    assert_close(with_adapter(dump_logits, model, folder).logits, wanted, TOLERANCE)
    assert_close(with_adapter(dump_logits, model, folder, kernels="reference").logits, wanted, TOLERANCE)


def stacked_experts(folder, experts: int) -> dict[str, np.ndarray]:
    """The model's weights, with one matrix for all experts of a layer."""
    weights = {name: np.array(value) for name, value in mx.load(str(folder / "model.safetensors")).items()}
    for first in [name for name in weights if ".experts.0." in name]:
        names = [first.replace(".experts.0.", f".experts.{expert}.") for expert in range(experts)]
        weights[first.replace(".experts.0.", ".switch_mlp.")] = np.stack([weights.pop(name) for name in names])
    return weights


def test_gguf_models_take_the_same_adapters(make_model, make_adapter, dump_logits, tmp_path):
    plain = make_model("qwen3_moe", overrides=(("mlp_only_layers", ()),))  # in qwen3moe, every layer has experts
    folder, adapter = make_adapter(plain, modules=WITH_ROUTERS)
    wanted = oracle.folder_logits(plain, PROMPTS, weights=adapters.merged_weights(plain, folder, adapter))
    config = json.loads((plain / "config.json").read_text())
    path = tmp_path / "experts.gguf"
    write_gguf(path, "qwen3moe", config, stacked_experts(plain, config["num_experts"]), GGMLQuantizationType.F32)
    assert_close(with_adapter(dump_logits, path, folder).logits, wanted, TOLERANCE)


def test_routers_and_shared_experts_need_no_flag(make_model, make_adapter, dump_logits):
    """They can also be merged."""
    model = make_model("qwen2_moe")
    folder, adapter = make_adapter(model, **SHARED)
    wanted = oracle.folder_logits(model, PROMPTS, weights=adapters.merged_weights(model, folder, adapter))
    assert_close(with_adapter(dump_logits, model, folder, lora_experts=False).logits, wanted, TOLERANCE)
    assert_close(dump_logits(model, PROMPTS, merge=folder).logits, wanted, TOLERANCE)


def test_metal_serves_routers_and_shared_experts(make_model, make_adapter, dump_logits):
    """In the simulator, with rows of the base model in the same step."""
    model = make_model("qwen2_moe")
    folder, adapter = make_adapter(model, **SHARED)
    prompts, slots = prompts_of(9, 1, 5, seed=3), [0, -1, 0]
    own = oracle.folder_logits(model, prompts, weights=adapters.merged_weights(model, folder, adapter))
    base = oracle.folder_logits(model, prompts)
    found = dump_logits(model, prompts, kernels="metal", batch=True, adapters=[folder], adapter_of=slots)
    assert_close(found.logits, [own[0], base[1], own[2]], 3e-4)
    assert found.launches["lora_expand.metal"] > 0


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("family, recipe", [("qwen2_moe", {}), ("qwen3_moe-mlx", QUANTIZED)], ids=["dense", "4bit"])
def test_mixed_rows_have_the_bits_of_rows_alone(make_model, make_adapter, dump_logits, family, recipe, dtype):
    """Four adapters with eight sequences each, and as many without one."""
    model = make_model(family, **recipe)
    kinds = [dict(form="mlx", modules=WITH_ROUTERS if not recipe else MODULES, rank=4), dict(form="mlx", modules=MODULES, rank=16),
             dict(form="mlx", modules=("gate_proj", "gate"), rank=40, dtype="bfloat16"),
             dict(form="mlx", modules=("down_proj",), rank=13, layers=(2,), dtype="float16")]
    folders = [make_adapter(model, seed=seed, **kind)[0] for seed, kind in enumerate(kinds)]
    prompts = prompts_of(*[1 + n % 9 for n in range(40)], seed=5)
    slots = [n % 5 - 1 for n in range(40)]
    how = {"dtype": dtype, "lora_experts": True}
    mixed = dump_logits(model, prompts, adapters=folders, adapter_of=slots, batch=True, **how).logits
    base = dump_logits(model, prompts, batch=True, dtype=dtype).logits
    for slot in range(-1, 4):
        own = [n for n in range(40) if slots[n] == slot]
        alone = [base[n] for n in own] if slot < 0 else dump_logits(
            model, [prompts[n] for n in own], adapters=[folders[slot]], adapter_of=[0] * len(own), **how).logits
        for n, wanted in zip(own, alone):
            assert np.array_equal(mixed[n].view(np.uint32), wanted.view(np.uint32)), (slot, n)
            assert (slot < 0) == np.array_equal(mixed[n], base[n]), (slot, n)


def test_every_instruction_set_has_the_same_bits(make_model, make_adapter, dump_logits):
    model = make_model("qwen3_moe")
    folder, _ = make_adapter(model, form="mlx", modules=WITH_ROUTERS)
    best, scalar = (with_adapter(dump_logits, model, folder, dtype="bfloat16", isa=isa).logits for isa in (None, "scalar"))
    assert all(np.array_equal(a, b) for a, b in zip(best, scalar))


def made_by_hand(folder, module, shapes, **config):
    """An adapter of one module of layer 0 in PEFT's form. shapes: of A and B."""
    folder.mkdir()
    name = f"base_model.model.model.layers.0.mlp.{module}"
    save_file({f"{name}.lora_{half}.weight": np.ones(shape, np.float32) for half, shape in zip("AB", shapes)},
              str(folder / "adapter_model.safetensors"))
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 8, "lora_alpha": 8} | config))
    return folder


WHOLE = ((8, 128), (64, 8))


@pytest.mark.parametrize("module, shapes, config, experts, reason", [
    ("experts.0.gate_proj", WHOLE, {}, False, "--lora-experts"),
    ("experts.16.gate_proj", WHOLE, {}, True, "experts have no such"),
    ("experts.0.gate_proj", ((8, 64), (64, 8)), {}, True, "shape"),
    ("switch_mlp.gate_proj", ((16, 8, 128), (16, 64, 8)), {}, True, "mlx-lm's name"),
    ("experts", ((128, 128), (128, 128)), {}, True, "target_parameters"),
    ("experts", ((128, 128), (128, 128)), {"target_parameters": ["mlp.experts.gate_up_proj"]}, True, "gate_up_proj"),
])
def test_refusals_name_the_reason(make_model, tmp_path, dump_logits, module, shapes, config, experts, reason):
    folder = made_by_hand(tmp_path / "adapter", module, shapes, **config)
    with pytest.raises(pytest.fail.Exception, match=reason):
        with_adapter(dump_logits, make_model("qwen3_moe"), folder, lora_experts=experts)


def test_experts_are_not_merged(make_model, tmp_path, dump_logits):
    folder = made_by_hand(tmp_path / "adapter", "experts.0.gate_proj", WHOLE)
    with pytest.raises(pytest.fail.Exception, match="not merged.*--lora-experts"):
        dump_logits(make_model("qwen3_moe"), PROMPTS[:1], merge=folder)


LIMITS = ("--max-model-len", "256", "--dtype", "float32")


def test_the_server_plans_memory_for_experts(octavo, make_model, make_adapter):
    """Its answers are those of the adapter alone, and the base model's are those without LoRA."""
    model = make_model("qwen3_moe")
    folder, _ = make_adapter(model, modules=WITH_ROUTERS)
    body = {"prompt": PROMPTS[2], "max_tokens": 8, "temperature": 0, "ignore_eos": True, "logprobs": 2}

    def answer(server, name):
        asked = json.dumps(body | ({"model": name} if name else {})).encode()
        request = urllib.request.Request(server.url + "/v1/completions", asked, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as response:
            choice = json.load(response)["choices"][0]
        return choice["text"], json.dumps(choice["logprobs"])

    flags = ("--enable-lora", "--lora-experts", "--lora-modules", f"one={folder}")
    with running_server.running(octavo, model, *LIMITS, *flags) as server:
        own, base = answer(server, "one"), answer(server, None)
    with running_server.running(octavo, model, *LIMITS) as server:
        assert answer(server, None) == base != own


@pytest.mark.parametrize("family, flags, reason", [
    ("qwen3_moe", ("--enable-lora",), "start with --lora-experts"),
    ("qwen3_moe", ("--lora-experts",), "--lora-experts requires --enable-lora"),
    ("qwen3", ("--enable-lora", "--lora-experts"), "this model has no experts"),
])
def test_the_flag_is_named(octavo, make_model, make_adapter, family, flags, reason):
    folder, _ = make_adapter(make_model("qwen3_moe"), modules=MODULES)
    modules = ("--lora-modules", f"one={folder}") if "--enable-lora" in flags else ()
    found = subprocess.run([octavo, "serve", make_model(family), "--port", "0", *LIMITS, *flags, *modules],
                           capture_output=True, text=True, timeout=60)
    assert found.returncode != 0 and reason in found.stderr, found.stderr
