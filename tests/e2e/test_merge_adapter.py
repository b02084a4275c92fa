"""--merge-adapter: logits of a model with a merged LoRA or DoRA adapter against mlx-lm and PEFT's definition, and what the server
keeps apart."""

import json
import subprocess
import urllib.request

import mlx.core as mx
import numpy as np
import pytest
import running_server
from conftest import assert_close, prompts_of
from modelkit import adapters, oracle
from safetensors.numpy import load_file, save_file

TOLERANCE = 1e-4
PROMPTS = prompts_of(1, 7, 70)
LIMITS = ("--max-model-len", "512", "--block-size", "16")


@pytest.mark.parametrize("dora", [False, True], ids=["lora", "dora"])
@pytest.mark.parametrize("family", ["llama", "gemma3-text"])
def test_logits_equal_mlx_lm(make_model, make_adapter, dump_logits, family, dora):
    model = make_model(family)
    folder, _ = make_adapter(model, form="mlx", dora=dora)
    wanted = oracle.folder_logits(model, PROMPTS, adapter=folder)
    assert_close(dump_logits(model, PROMPTS, merge=folder).logits, wanted, TOLERANCE)
    assert np.abs(wanted[2] - dump_logits(model, PROMPTS).logits[2]).max() > 100 * TOLERANCE  # the adapter matters


# phi3 has fused matrices; glm4's q and k rows are interleaved; Qwen3.5's q_proj has gates between its rows.
@pytest.mark.parametrize("family, fields", [
    ("llama", {"dora": True}),
    ("llama", {"rslora": True, "rank": 24, "layers": (1,)}),
    ("phi3", {"dora": True, "rank": 4}),
    ("glm4", {"rank": 16}),
    ("qwen3.5", {"modules": adapters.ATTENTION, "dora": True}),
])
def test_logits_equal_the_definition_of_peft(make_model, make_adapter, dump_logits, family, fields):
    model = make_model(family)
    folder, adapter = make_adapter(model, **fields)
    wanted = oracle.folder_logits(model, PROMPTS, weights=adapters.merged_weights(model, folder, adapter))
    assert_close(dump_logits(model, PROMPTS, merge=folder).logits, wanted, TOLERANCE)


def test_gguf_models_take_the_same_adapters(make_model, make_adapter, dump_logits):
    """Their q and k rows have another order in the file."""
    plain = make_model("llama")
    folder, adapter = make_adapter(plain, dora=True)
    wanted = oracle.folder_logits(plain, PROMPTS, weights=adapters.merged_weights(plain, folder, adapter))
    assert_close(dump_logits(make_model("llama", format="gguf", gguf_type="f32"), PROMPTS, merge=folder).logits, wanted, TOLERANCE)


def test_weights_are_rounded_once(make_model, make_adapter, dump_logits):
    """The logits are those of a checkpoint with the numbers of docs/arithmetic.md, bit for bit."""
    model = make_model("llama", dtype="bfloat16")
    folder, adapter = make_adapter(model)
    weights = oracle.folder_weights(model)
    tensors = load_file(str(folder / "adapter_model.safetensors"))
    for module in adapters.linear_shapes(model, adapter):
        a, b = (tensors[f"base_model.model.{module}.lora_{half}.weight"] for half in "AB")
        sums = np.zeros((len(b), a.shape[1]), np.float32)
        for rank in range(len(a)):
            sums += b[:, rank, None] * a[rank]
        scale = np.float32(adapters.rank_and_scale(adapter, module)[1])
        weights[f"{module}.weight"] = mx.array(np.array(weights[f"{module}.weight"]) + scale * sums)
    fine_tuned = folder.parent / "fine-tuned"
    fine_tuned.mkdir()
    mx.save_safetensors(str(fine_tuned / "model.safetensors"), {name: value.astype(mx.bfloat16) for name, value in weights.items()})
    (fine_tuned / "config.json").write_bytes((model / "config.json").read_bytes())
    wanted = dump_logits(fine_tuned, PROMPTS, dtype="bfloat16").logits
    got = dump_logits(model, PROMPTS, dtype="bfloat16", merge=folder).logits
    assert all(np.array_equal(one.view(np.uint32), two.view(np.uint32)) for one, two in zip(got, wanted))


def test_every_instruction_set_merges_the_same_bits(make_model, make_adapter, dump_logits):
    model = make_model("llama")
    folder, _ = make_adapter(model, dora=True)
    best, plain = (dump_logits(model, PROMPTS, merge=folder, isa=isa).logits for isa in (None, "scalar"))
    assert all(np.array_equal(one.view(np.uint32), two.view(np.uint32)) for one, two in zip(best, plain))


def test_quantised_weights_are_refused(make_model, make_adapter, dump_logits):
    model = make_model("qwen3", format="mlx", bits=4, group_size=32)
    folder, _ = make_adapter(make_model("qwen3"))
    with pytest.raises(pytest.fail.Exception, match="quantised.*--enable-lora"):
        dump_logits(model, PROMPTS[:1], merge=folder)


def test_dora_needs_all_its_magnitudes(make_model, make_adapter, dump_logits):
    model = make_model("llama")
    folder, _ = make_adapter(model, dora=True)
    path = folder / "adapter_model.safetensors"
    tensors = load_file(str(path))
    del tensors["base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector"]
    save_file(tensors, str(path))
    with pytest.raises(pytest.fail.Exception, match="q_proj.*magnitude"):
        dump_logits(model, PROMPTS[:1], merge=folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"use_dora": False}))
    with pytest.raises(pytest.fail.Exception, match="DoRA"):
        dump_logits(model, PROMPTS[:1], merge=folder)


def answers(octavo, model, *flags):
    with running_server.running(octavo, model, *LIMITS, *flags) as server:
        out = []
        for _ in range(2):
            body = {"prompt": PROMPTS[2], "max_tokens": 8, "temperature": 0, "ignore_eos": True, "logprobs": 1}
            request = urllib.request.Request(server.url + "/v1/completions", json.dumps(body).encode(),
                                             {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=120) as reply:
                answer = json.load(reply)
            out.append((json.dumps(answer["choices"][0]["logprobs"]), answer["system_fingerprint"],
                        answer["usage"]["prompt_tokens_details"]["cached_tokens"]))
        return out


def test_the_server_keeps_answers_and_pages_apart(octavo, make_model, make_adapter, tmp_path):
    model = make_model("qwen3")
    folders = [make_adapter(model, seed=seed)[0] for seed in range(2)]
    disk = ("--prefix-disk", tmp_path / "disk")
    runs = [answers(octavo, model, *disk, *flags) for flags in
            ((), ("--merge-adapter", folders[0]), ("--merge-adapter", folders[1]), ("--merge-adapter", folders[0]))]
    assert [run[0][2] for run in runs[:3]] == [0, 0, 0] and all(run[1][2] > 0 for run in runs)
    assert runs[3][0][2] > 0  # the same adapter again finds its pages
    assert len({run[0][0] for run in runs}) == len({run[0][1] for run in runs}) == 3
    assert runs[1][0][:2] == runs[3][0][:2]


def test_refusals_name_the_flag(octavo, make_model, tmp_path):
    done = subprocess.run([octavo, "serve", make_model("qwen3"), "--port", "0", *LIMITS, "--merge-adapter", tmp_path / "none"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "--merge-adapter: " in done.stderr and "does not exist" in done.stderr, done.stderr
