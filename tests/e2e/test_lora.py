"""LoRA adapters: logits against mlx-lm and PEFT's definition, bits of mixed batches, and refusals.

All run on random tiny checkpoints. Logits are compared in float32; bits in every type."""

import json

import numpy as np
import pytest
from conftest import assert_close, prompts_of
from modelkit import adapters, oracle
from safetensors.numpy import load_file, save_file

TOLERANCE = 1e-4
PROMPTS = prompts_of(1, 7, 70)
QUANTIZED = {"format": "mlx", "bits": 4, "group_size": 32}


def with_adapter(dump_logits, model, folder, **how):
    return dump_logits(model, PROMPTS, adapters=[folder], adapter_of=[0] * len(PROMPTS), **how).logits


@pytest.mark.parametrize("family, recipe", [("llama", {}), ("llama", {"biases": True}), ("qwen3", QUANTIZED), ("gemma3-text", {}),
                                            ("phi4-mini", {}), ("granite", {})])
def test_logits_equal_mlx_lm(make_model, make_adapter, dump_logits, family, recipe):
    model = make_model(family, **recipe)
    folder, _ = make_adapter(model, form="mlx")
    wanted = oracle.folder_logits(model, PROMPTS, adapter=folder)
    assert_close(with_adapter(dump_logits, model, folder), wanted, TOLERANCE)
    assert np.abs(wanted[2] - dump_logits(model, PROMPTS).logits[2]).max() > 100 * TOLERANCE  # the adapter matters


# glm4's q and k rows are interleaved, and Qwen3.5's q_proj has gates between its rows.
@pytest.mark.parametrize("family, fields", [
    ("llama", {}),
    ("llama", {"rslora": True, "rank": 24, "layers": (1,)}),
    ("qwen2", {"rank_pattern": {"q_proj": 4, "layers.0.mlp.up_proj": 32}, "alpha_pattern": {"k_proj": 40}}),
    ("glm4", {"rank": 16}),
    ("qwen3.5", {"modules": adapters.ATTENTION}),
    ("mixtral", {"modules": adapters.ATTENTION}),
    ("phi3", {"rank": 256}),
])
def test_logits_equal_the_definition_of_peft(make_model, make_adapter, dump_logits, family, fields):
    model = make_model(family)
    folder, adapter = make_adapter(model, **fields)
    wanted = oracle.folder_logits(model, PROMPTS, weights=adapters.merged_weights(model, folder, adapter))
    assert_close(with_adapter(dump_logits, model, folder), wanted, TOLERANCE)
    assert_close(with_adapter(dump_logits, model, folder, kernels="reference"), wanted, TOLERANCE)


def test_gguf_models_take_the_same_adapters(make_model, make_adapter, dump_logits):
    """Their q and k rows have another order in the file."""
    plain = make_model("llama")
    folder, adapter = make_adapter(plain)
    wanted = oracle.folder_logits(plain, PROMPTS, weights=adapters.merged_weights(plain, folder, adapter))
    assert_close(with_adapter(dump_logits, make_model("llama", format="gguf", gguf_type="f32"), folder), wanted, TOLERANCE)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("recipe", [{}, QUANTIZED], ids=["dense", "4bit"])
def test_mixed_rows_have_the_bits_of_rows_alone(make_model, make_adapter, dump_logits, recipe, dtype):
    """Four adapters with 16 sequences each, and as many without one."""
    model = make_model("qwen3", **recipe)
    kinds = [dict(rank=4), dict(rank=16, modules=adapters.ATTENTION), dict(rank=64, form="mlx", dtype="bfloat16"),
             dict(rank=13, modules=("q_proj", "down_proj"), layers=(1,), dtype="float16")]
    folders = [make_adapter(model, seed=seed, **kind)[0] for seed, kind in enumerate(kinds)]
    prompts = prompts_of(*[1 + n % 9 for n in range(80)], seed=5)
    slots = [n % 5 - 1 for n in range(80)]
    mixed = dump_logits(model, prompts, adapters=folders, adapter_of=slots, batch=True, dtype=dtype).logits
    base = dump_logits(model, prompts, batch=True, dtype=dtype).logits
    for slot in range(-1, 4):
        own = [n for n in range(80) if slots[n] == slot]
        if slot < 0:
            alone = [base[n] for n in own]
        else:
            alone = dump_logits(model, [prompts[n] for n in own], adapters=[folders[slot]], adapter_of=[0] * len(own),
                                dtype=dtype).logits
        for n, wanted in zip(own, alone):
            assert np.array_equal(mixed[n].view(np.uint32), wanted.view(np.uint32)), (slot, n)
    assert not np.array_equal(mixed[1], base[1])


# How a good adapter is spoiled, and what the refusal says.
def change_config(**values):
    def spoil(folder):
        path = folder / "adapter_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return spoil


def change_tensors(change):
    def spoil(folder):
        path = next(folder.glob("*.safetensors"))
        tensors = load_file(str(path))
        change(tensors)
        save_file(tensors, str(path))

    return spoil


def renamed(old, new):
    def change(tensors):
        for name in [name for name in tensors if old in name]:
            tensors[name.replace(old, new)] = tensors.pop(name)

    return change_tensors(change)


def set_tensor(name, value):
    return change_tensors(lambda tensors: tensors.__setitem__("base_model.model.model.layers.0." + name, value))


REFUSED = {
    "dora": (change_config(use_dora=True), "use_dora.*--merge-adapter"),
    "bias": (change_config(bias="all"), "bias"),
    "modules to save": (change_config(modules_to_save=["lm_head"]), "lm_head"),
    "other method": (change_config(peft_type="LOHA"), "LOHA|only LORA"),
    "pissa": (change_config(init_lora_weights="pissa"), "pissa"),
    "unknown key": (change_config(new_trick=3), "new_trick"),
    "pattern": (change_config(rank_pattern={".*q_proj": 4}), "rank_pattern"),
    "rank": (change_config(r=0), '"r"|`r`|r'),
    "alpha": (change_config(lora_alpha=-1), "lora_alpha"),
    "other rank": (change_config(r=9), "shape"),
    "target": (change_config(target_modules=["v_proj"]), "target_modules"),
    "large rank": (change_config(r=300), "--max-lora-rank 300"),
    "magnitude": (set_tensor("self_attn.q_proj.lora_magnitude_vector.weight", np.ones(3, np.float32)), "DoRA"),
    "unknown tensor": (set_tensor("self_attn.q_proj.lora_C.weight", np.ones(3, np.float32)), "lora_C"),
    "not a module": (renamed("q_proj", "z_proj"), "z_proj"),
    "no such layer": (renamed("layers.1", "layers.99"), "layers.99"),
    "vision": (renamed("model.model.layers", "model.visual.layers"), "visual"),
    "one half": (change_tensors(lambda t: t.pop("base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight")), "only one"),
    "infinite": (change_tensors(lambda t: t["base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"].fill(np.inf)),
                 "not finite"),
    "integers": (set_tensor("self_attn.q_proj.lora_A.weight", np.ones((8, 160), np.int32)), "lora_A"),
    "embeddings": (renamed("layers.1.self_attn.q_proj", "embed_tokens"), "embed"),
    "copy of the base": (change_tensors(lambda t: t.__setitem__(
        "base_model.model.lm_head.base_layer.weight", np.ones((2, 2), np.float32))), "save_embedding_layers"),
    "truncated": (lambda folder: (folder / "adapter_model.safetensors").write_bytes(
        (folder / "adapter_model.safetensors").read_bytes()[:-3]), "adapter_model.safetensors"),
    "both forms": (lambda folder: (folder / "adapters.safetensors").write_bytes(b""), "both"),
    "no tensors": (lambda folder: (folder / "adapter_model.safetensors").unlink(), "neither"),
    "no config": (lambda folder: (folder / "adapter_config.json").unlink(), "adapter_config.json"),
    "bad config": (lambda folder: (folder / "adapter_config.json").write_text("[" * 100000), "adapter_config.json"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_reason(make_model, make_adapter, dump_logits, name):
    spoil, reason = REFUSED[name]
    model = make_model("llama")
    folder, _ = make_adapter(model)
    with_adapter(dump_logits, model, folder)
    spoil(folder)
    with pytest.raises(pytest.fail.Exception, match=reason):
        dump_logits(model, PROMPTS[:1], adapters=[folder], adapter_of=[0])


MLX_REFUSED = {
    "dora": (change_config(fine_tune_type="dora"), "DoRA.*--merge-adapter"),
    "full": (change_config(fine_tune_type="full"), "fine_tune_type"),
    "no scale": (change_config(lora_parameters={"rank": 8}), "scale"),
    "unknown key": (change_config(lora_parameters={"rank": 8, "scale": 2.0, "twist": 1}), "twist"),
    "layers": (change_config(num_layers=1), "num_layers"),
    "keys": (change_config(lora_parameters={"rank": 8, "scale": 2.0, "keys": ["self_attn.v_proj"]}), "keys"),
}


@pytest.mark.parametrize("name", MLX_REFUSED)
def test_refusals_of_mlx_lms_form_name_the_reason(make_model, make_adapter, dump_logits, name):
    spoil, reason = MLX_REFUSED[name]
    model = make_model("llama")
    folder, _ = make_adapter(model, form="mlx")
    spoil(folder)
    with pytest.raises(pytest.fail.Exception, match=reason):
        dump_logits(model, PROMPTS[:1], adapters=[folder], adapter_of=[0])


@pytest.mark.parametrize("family, module, reason", [
    ("mixtral", "block_sparse_moe.experts.0.w1", "experts"),
    ("deepseek_v2-lite", "self_attn.kv_b_proj", "MLA"),
    ("qwen3.5-text", "linear_attn.out_proj", "gated delta"),
    ("granitemoehybrid", "mamba.in_proj", "Mamba-2"),
])
def test_layers_without_support_are_named(make_model, tmp_path, dump_logits, family, module, reason):
    folder = tmp_path / "adapter"
    folder.mkdir()
    name = f"base_model.model.model.layers.0.{module}"
    save_file({f"{name}.lora_{half}.weight": np.ones((8, 8), np.float32) for half in "AB"},
              str(folder / "adapter_model.safetensors"))
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 8, "lora_alpha": 8}))
    with pytest.raises(pytest.fail.Exception, match=reason):
        dump_logits(make_model(family), PROMPTS[:1], adapters=[folder], adapter_of=[0])
