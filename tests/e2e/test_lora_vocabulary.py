"""LoRA on embeddings and the output matrix, served and merged: logits against mlx-lm and PEFT's definition, bits of mixed batches,
and refusals."""

import json

import numpy as np
import pytest
from conftest import assert_close, prompts_of
from modelkit import adapters, oracle

TOLERANCE = 1e-4
PROMPTS = prompts_of(1, 7, 70)
HEAD = ("lm_head",)
TABLE = ("embed_tokens",)
BOTH = ("embed_tokens", "lm_head")


def with_adapter(dump_logits, model, folder, **how):
    return dump_logits(model, PROMPTS, adapters=[folder], adapter_of=[0] * len(PROMPTS), **how).logits


# gemma3's embeddings are scaled.
FORMS = [("llama", False, BOTH), ("llama", True, TABLE), ("gemma3-text", True, TABLE)]
QUANTIZED = {"format": "mlx", "bits": 4, "group_size": 32}


@pytest.mark.parametrize("family, tied, vocabulary, recipe", [*[(*form, {}) for form in FORMS], ("llama", False, HEAD, {}),
                                                              ("llama", False, TABLE, {}), ("qwen3", False, HEAD, QUANTIZED),
                                                              ("qwen3", True, TABLE, QUANTIZED)])
def test_logits_equal_mlx_lm(make_model, make_adapter, dump_logits, family, tied, vocabulary, recipe):
    """If the output matrix is the embeddings, mlx-lm changes both."""
    model = make_model(family, tied=tied, **recipe)
    folder, _ = make_adapter(model, form="mlx", vocabulary=vocabulary)
    wanted = oracle.folder_logits(model, PROMPTS, adapter=folder)
    assert_close(with_adapter(dump_logits, model, folder), wanted, TOLERANCE)
    assert_close(with_adapter(dump_logits, model, folder, kernels="reference"), wanted, TOLERANCE)


@pytest.mark.parametrize("family, tied, vocabulary", FORMS)
def test_merged_logits_equal_mlx_lm(make_model, make_adapter, dump_logits, family, tied, vocabulary):
    model = make_model(family, tied=tied)
    folder, _ = make_adapter(model, form="mlx", modules=("q_proj",), vocabulary=vocabulary)
    wanted = oracle.folder_logits(model, PROMPTS, adapter=folder)
    assert_close(dump_logits(model, PROMPTS, merge=folder).logits, wanted, TOLERANCE)
    layers, _ = make_adapter(model, form="mlx", modules=("q_proj",))
    assert np.abs(wanted[2] - dump_logits(model, PROMPTS, merge=layers).logits[2]).max() > 10 * TOLERANCE  # the tables matter


@pytest.mark.parametrize("vocabulary", [HEAD, TABLE, BOTH])
def test_logits_equal_the_definition_of_peft(make_model, make_adapter, dump_logits, vocabulary):
    model = make_model("llama", tied=False)
    folder, adapter = make_adapter(model, vocabulary=vocabulary, modules=("q_proj",), rank=12)
    wanted = oracle.folder_logits(model, PROMPTS, weights=adapters.merged_weights(model, folder, adapter))
    assert_close(dump_logits(model, PROMPTS, merge=folder).logits, wanted, TOLERANCE)
    assert_close(with_adapter(dump_logits, model, folder), wanted, TOLERANCE)
    assert_close(with_adapter(dump_logits, model, folder, kernels="reference"), wanted, TOLERANCE)


def test_peft_does_not_change_the_output_matrix_of_tied_embeddings(make_model, make_adapter, dump_logits):
    model = make_model("llama", tied=True)
    folder, adapter = make_adapter(model, vocabulary=TABLE, rank=12)
    weights = adapters.merged_weights(model, folder, adapter)
    weights["lm_head.weight"] = np.array(oracle.folder_weights(model)["model.embed_tokens.weight"])
    config = json.loads((model / "config.json").read_text()) | {"tie_word_embeddings": False}
    wanted = oracle.logits(oracle.load(config, weights), PROMPTS)
    assert_close(with_adapter(dump_logits, model, folder), wanted, TOLERANCE)
    assert_close(with_adapter(dump_logits, model, folder, kernels="reference"), wanted, TOLERANCE)


KINDS = {
    False: [dict(rank=4, form="mlx", vocabulary=BOTH), dict(rank=16), dict(rank=33, modules=("q_proj",), vocabulary=TABLE)],
    True: [dict(rank=4, form="mlx", vocabulary=TABLE), dict(rank=16, vocabulary=TABLE), dict(rank=33, modules=("v_proj",))],
}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_mixed_rows_have_the_bits_of_rows_alone(make_model, make_adapter, dump_logits, dtype, tied):
    model = make_model("llama", tied=tied)
    kinds = KINDS[tied]
    folders = [make_adapter(model, seed=seed, **kind)[0] for seed, kind in enumerate(kinds)]
    prompts = prompts_of(*[1 + n % 9 for n in range(40)], seed=5)
    slots = [n % 4 - 1 for n in range(40)]
    mixed = dump_logits(model, prompts, adapters=folders, adapter_of=slots, batch=True, dtype=dtype).logits
    base = dump_logits(model, prompts, batch=True, dtype=dtype).logits
    for slot in range(-1, 3):
        own = [n for n in range(40) if slots[n] == slot]
        alone = [base[n] for n in own] if slot < 0 else dump_logits(
            model, [prompts[n] for n in own], adapters=[folders[slot]], adapter_of=[0] * len(own), dtype=dtype).logits
        for n, wanted in zip(own, alone):
            assert np.array_equal(mixed[n].view(np.uint32), wanted.view(np.uint32)), (slot, n)
            assert np.array_equal(wanted, base[n]) == (slot < 0), (slot, n)


def test_every_instruction_set_has_the_same_bits(make_model, make_adapter, dump_logits):
    model = make_model("llama", tied=True)
    folder, _ = make_adapter(model, form="mlx", vocabulary=TABLE)
    best, plain = (with_adapter(dump_logits, model, folder, dtype="bfloat16", isa=isa) for isa in (None, "scalar"))
    assert all(np.array_equal(one.view(np.uint32), two.view(np.uint32)) for one, two in zip(best, plain))


def test_pefts_scaled_embeddings_are_refused(make_model, make_adapter, dump_logits):
    model = make_model("gemma3-text")
    folder, _ = make_adapter(model, vocabulary=TABLE)
    with pytest.raises(pytest.fail.Exception, match="scales its embeddings"):
        with_adapter(dump_logits, model, folder)


@pytest.mark.parametrize("tied, module, merges, reason", [
    (True, "lm_head", False, "not clear"),
    (True, "lm_head", True, "not clear"),
    (True, "embed_tokens", True, "PEFT changes both"),
])
def test_refusals_name_the_reason(make_model, make_adapter, dump_logits, tied, module, merges, reason):
    folder, _ = make_adapter(make_model("llama", tied=False), vocabulary=(module,))
    model = make_model("llama", tied=tied)
    with pytest.raises(pytest.fail.Exception, match=reason):
        dump_logits(model, PROMPTS[:1], merge=folder) if merges else with_adapter(dump_logits, model, folder)
