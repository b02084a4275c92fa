"""LoRA on the output matrix, and merged into embeddings: logits against mlx-lm and PEFT's definition, bits of mixed batches, and
refusals."""

import numpy as np
import pytest
from conftest import assert_close, prompts_of
from modelkit import adapters, oracle

TOLERANCE = 1e-4
PROMPTS = prompts_of(1, 7, 70)
HEAD = ("lm_head",)
BOTH = ("embed_tokens", "lm_head")


def with_adapter(dump_logits, model, folder, **how):
    return dump_logits(model, PROMPTS, adapters=[folder], adapter_of=[0] * len(PROMPTS), **how).logits


@pytest.mark.parametrize("family, recipe", [("llama", {}), ("qwen3", {"format": "mlx", "bits": 4, "group_size": 32})])
def test_logits_equal_mlx_lm(make_model, make_adapter, dump_logits, family, recipe):
    model = make_model(family, tied=False, **recipe)
    folder, _ = make_adapter(model, form="mlx", vocabulary=HEAD)
    wanted = oracle.folder_logits(model, PROMPTS, adapter=folder)
    assert_close(with_adapter(dump_logits, model, folder), wanted, TOLERANCE)


# gemma3's embeddings are scaled.
@pytest.mark.parametrize("family, tied, vocabulary", [("llama", False, BOTH), ("llama", True, ("embed_tokens",)),
                                                      ("gemma3-text", True, ("embed_tokens",))])
def test_merged_logits_equal_mlx_lm(make_model, make_adapter, dump_logits, family, tied, vocabulary):
    model = make_model(family, tied=tied)
    folder, _ = make_adapter(model, form="mlx", modules=("q_proj",), vocabulary=vocabulary)
    wanted = oracle.folder_logits(model, PROMPTS, adapter=folder)
    assert_close(dump_logits(model, PROMPTS, merge=folder).logits, wanted, TOLERANCE)
    layers, _ = make_adapter(model, form="mlx", modules=("q_proj",))
    assert np.abs(wanted[2] - dump_logits(model, PROMPTS, merge=layers).logits[2]).max() > 10 * TOLERANCE  # the tables matter


@pytest.mark.parametrize("vocabulary", [HEAD, ("embed_tokens",), BOTH])
def test_logits_equal_the_definition_of_peft(make_model, make_adapter, dump_logits, vocabulary):
    model = make_model("llama", tied=False)
    folder, adapter = make_adapter(model, vocabulary=vocabulary, modules=("q_proj",), rank=12)
    wanted = oracle.folder_logits(model, PROMPTS, weights=adapters.merged_weights(model, folder, adapter))
    assert_close(dump_logits(model, PROMPTS, merge=folder).logits, wanted, TOLERANCE)
    if vocabulary == HEAD:
        assert_close(with_adapter(dump_logits, model, folder), wanted, TOLERANCE)
        assert_close(with_adapter(dump_logits, model, folder, kernels="reference"), wanted, TOLERANCE)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_mixed_rows_have_the_bits_of_rows_alone(make_model, make_adapter, dump_logits, dtype):
    model = make_model("llama", tied=False)
    kinds = [dict(rank=4, form="mlx", vocabulary=HEAD), dict(rank=16), dict(rank=33, modules=("q_proj",), vocabulary=HEAD)]
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


@pytest.mark.parametrize("tied, module, merges, reason", [
    (False, "embed_tokens", False, "--merge-adapter"),
    (True, "lm_head", False, "not clear"),
    (True, "lm_head", True, "not clear"),
    (True, "embed_tokens", True, "PEFT changes both"),
])
def test_refusals_name_the_reason(make_model, make_adapter, dump_logits, tied, module, merges, reason):
    folder, _ = make_adapter(make_model("llama", tied=False), vocabulary=(module,))
    model = make_model("llama", tied=tied)
    with pytest.raises(pytest.fail.Exception, match=reason):
        dump_logits(model, PROMPTS[:1], merge=folder) if merges else with_adapter(dump_logits, model, folder)
