"""Every matrix of a model divided over several processes (--tensor-parallel-size): every byte equals that of one process, whatever the request,
and refusals are named.

tests/e2e/test_tensor_bits.py compares logits without a server, tests/e2e/test_pipeline_faults.py has ranks that end or hang, and
tests/e2e/test_launch.py the commands around it. What does not depend on how a model is divided (secrets, versions, other models) is in
tests/e2e/test_pipeline.py."""

import json
import subprocess
import time

import embedders
import pytest
from cluster_kit import Cluster, Setup
from cluster_requests import LONG, SHORT, TINY, answers, requests
from network_places import Namespaces, NotPermitted
from prefix_replay import make_long_context
from processes import processor_seconds


def kv_heads(count: int) -> dict:
    return {"overrides": (("num_key_value_heads", count),)}


# Fields of the recipe, and numbers of ranks. Heads, strips of 16 outputs and experts' outputs do not divide evenly by all of them: with 3 ranks,
# gemma2's last one has no head of its own.
MODELS = {
    "llama": ({}, [2]),
    "smollm2": ({}, [2, 3]),  # 3 KV heads
    "gemma2": ({}, [2, 3, 4]),  # windows, soft caps, 4 KV heads
    "qwen3.5": ({}, [2]),  # a hybrid: the recurrence runs on every rank
    "deepseek_v3": ({}, [2, 3, 4]),  # latent attention with 5 heads, and experts
    "gpt_oss": (kv_heads(4), [2, 4]),  # sinks, windows, biases, mxfp4 experts
    "gemma4-text": (kv_heads(4), [2, 3]),  # layers that share caches, inputs for every layer
    "nemotron_h": ({}, [2]),  # Mamba-2, and layers with one part
    "lfm2": (kv_heads(4), [2, 4]),  # short convolutions
}
EVERY_SIZE = [(name, ranks) for name, (_, sizes) in MODELS.items() for ranks in sizes]


@pytest.fixture
def start(octavo, tmp_path):
    def start(model, ranks: int, *flags, **fields) -> Cluster:
        return Cluster(octavo, model, ranks, tmp_path, Setup(flags=flags, divides="tensor", **fields))

    return start


@pytest.fixture(scope="module")
def reference(octavo, make_model, tmp_path_factory):
    """reference(name) returns a model and the answers of one process."""
    known = {}

    def reference(name: str):
        if name not in known:
            model = make_model(name, dtype="bfloat16", **MODELS[name][0])
            with Cluster(octavo, model, 1, tmp_path_factory.mktemp("one"), Setup(flags=TINY)) as one:
                known[name] = model, answers(one, requests(), together=1)
        return known[name]

    return reference


@pytest.mark.parametrize("name, ranks", EVERY_SIZE)
def test_answers_equal_those_of_one_process(start, reference, name, ranks):
    model, expected = reference(name)
    with start(model, ranks, *TINY) as cluster:
        assert answers(cluster, requests()) == expected
        assert cluster.stop() == [0] * ranks, cluster.logs()


def test_prefix_hits_and_chunks_change_nothing(start, reference):
    model, expected = reference("gemma2")
    with start(model, 3, *TINY, "--max-num-batched-tokens", 48) as cluster:
        assert answers(cluster, requests()) == expected
        assert answers(cluster, requests()) == expected
    model, expected = reference("llama")
    with start(model, 2, *TINY, "--max-num-batched-tokens", 48) as cluster:
        assert answers(cluster, requests()) == expected
        again = cluster.complete(prompt=LONG, max_tokens=4, temperature=0, model="model").json()
        assert again["usage"]["prompt_tokens_details"]["cached_tokens"] >= 256


def test_hybrid_prefix_hits(start, octavo, tmp_path):
    model = make_long_context(tmp_path / "hybrid", "qwen3.5", context=4096, dtype="bfloat16")
    flags = ("--max-model-len", 2048, "--block-size", 16)
    bodies = [{"model": "model", "prompt": LONG * 3 + [number], "max_tokens": 12, "temperature": 0} for number in range(4)]
    with start(model, 1, *flags) as one:
        expected = answers(one, bodies, together=1)
    with start(model, 2, *flags) as cluster:
        assert answers(cluster, bodies, together=1) == expected
        assert answers(cluster, bodies) == expected
        assert cluster.metric("vllm:prefix_cache_hits_total") > 0


def test_preemption_changes_nothing(start, reference):
    model, _ = reference("llama")
    bodies = [{"model": "model", "prompt": LONG[:100 + number], "max_tokens": 150, "temperature": 1, "seed": number, "ignore_eos": True}
              for number in range(8)]
    with start(model, 1, *TINY) as one:
        expected = answers(one, bodies, together=1)
    with start(model, 2, *TINY, "--kv-memory", "1MiB", "--no-enable-prefix-caching") as cluster:
        assert answers(cluster, bodies, together=8) == expected
        assert cluster.metric("vllm:num_preemptions_total") > 0


@pytest.mark.parametrize("config", [{"method": "none"}, {"method": "ngram", "num_speculative_tokens": 4}])
def test_speculation_changes_nothing(start, reference, config):
    model, expected = reference("llama")
    with start(model, 2, *TINY, "--speculative-config", json.dumps(config)) as cluster:
        assert answers(cluster, requests(), together=2) == expected


def test_a_draft_model_on_rank_0(start, make_model, reference):
    model, expected = reference("llama")
    config = json.dumps({"model": str(make_model("llama", dtype="bfloat16", seed=3)), "num_speculative_tokens": 3})
    with start(model, 2, *TINY, "--speculative-config", config) as cluster:
        assert answers(cluster, requests(), together=2) == expected


def test_a_prediction_layer(start, make_model):
    model = make_model("qwen3.5-mtp", dtype="bfloat16")
    with start(model, 1, *TINY, "--speculative-config", '{"method": "none"}') as one:
        expected = answers(one, requests(), together=1)
    with start(model, 2, *TINY, "--speculative-config", '{"method": "mtp"}') as cluster:
        assert answers(cluster, requests(), together=2) == expected


def test_embeddings(start, make_model, tmp_path):
    model = embedders.dress(make_model("qwen3"), tmp_path / "embedder", "mean_tokens")
    bodies = [{"model": "model", "input": LONG[:length]} for length in (1, 17, 64, 200)]
    flags = ("--dtype", "float32", "--max-model-len", 512, "--max-num-batched-tokens", 48, "--block-size", 8)
    with start(model, 1, *flags) as one:
        expected = answers(one, bodies, together=1, path="/v1/embeddings")
    with start(model, 2, *flags) as cluster:
        assert answers(cluster, bodies, path="/v1/embeddings") == expected


def test_a_quantised_cache(start, reference):
    model, _ = reference("llama")
    flags = (*TINY, "--kv-cache-dtype", "int8")
    with start(model, 1, *flags) as one:
        expected = answers(one, requests(), together=1)
    with start(model, 2, *flags) as cluster:
        assert answers(cluster, requests()) == expected


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_real_model_in_a_chat(start, smollm2_gguf, ranks):
    flags = ("--max-model-len", 1024, "--kv-memory", "256MiB")
    bodies = [{"model": "model", "messages": [{"role": "user", "content": text}], "max_tokens": 40, "temperature": temperature, "seed": 1}
              for text in ("What is the capital of France?", "Write about the sea. " * 40) for temperature in (0, 1)]
    with start(smollm2_gguf, 1, *flags) as one:
        expected = answers(one, bodies, together=1, path="/v1/chat/completions")
    with start(smollm2_gguf, ranks, *flags) as cluster:
        assert answers(cluster, bodies, path="/v1/chat/completions") == expected


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("name", ["llama", "deepseek_v3", "qwen3.5"])
def test_instruction_sets_may_differ(start, reference, instruction_sets, name, rank):
    model, expected = reference(name)
    lower = "avx2" if "avx2" in instruction_sets[:-1] else instruction_sets[0]
    highest = instruction_sets[-1]  # amx, if this machine has it
    with start(model, 2, *TINY, environment={rank: {"OCTAVO_ISA": lower}, 1 - rank: {"OCTAVO_ISA": highest}}) as cluster:
        assert answers(cluster, requests()) == expected


def test_pages_on_disk_survive_a_restart(start, reference, tmp_path):
    model, _ = reference("llama")
    body = {"model": "model", "prompt": LONG, "max_tokens": 16, "temperature": 0}
    flags = (*TINY, "--prefix-disk", tmp_path / "pages")
    with start(model, 2, *flags) as cluster:
        first = answers(cluster, [body])
        time.sleep(0.5)  # until the pages are on disk
        assert cluster.stop() == [0, 0], cluster.logs()
    with start(model, 2, *flags) as cluster:
        assert answers(cluster, [body]) == first
        cluster.complete(prompt=SHORT, max_tokens=4, model="model")  # metrics are those of the last step
        assert cluster.metric("octavo:prefix_disk_read_pages_total") > 0


def test_an_idle_cluster_uses_no_processor_time(start, reference):
    model, _ = reference("smollm2")
    with start(model, 3, *TINY) as cluster:
        cluster.complete(prompt=SHORT, max_tokens=4, model="model")
        time.sleep(0.5)
        before = [processor_seconds(process.pid) for process in cluster.processes]
        time.sleep(3)
        used = [processor_seconds(process.pid) - start for process, start in zip(cluster.processes, before)]
        assert max(used) < 0.1, used


# Refusals


def test_more_ranks_than_kv_heads_are_refused(start, reference):
    model, _ = reference("llama")
    cluster = start(model, 3, *TINY)
    try:
        cluster.start()
        codes = cluster.exit_codes(60)
        assert None not in codes and 0 not in codes, cluster.logs()
        said = cluster.log(0).read_text()
        assert "--tensor-parallel-size" in said and "heads" in said, said
    finally:
        cluster.kill()


def test_what_does_not_combine_is_refused_by_name(octavo, reference, tmp_path):
    model, _ = reference("llama")
    secret = tmp_path / "secret"
    secret.write_text("a secret of enough characters")
    cluster = ("--tensor-parallel-size", 2, "--distributed-secret-file", secret)
    for words, parts in (
        (("serve", model, *cluster, "--enable-lora"), ["--enable-lora", "--tensor-parallel-size"]),
        (("serve", model, model, *cluster), ["--tensor-parallel-size", "one model"]),
        (("serve", model, *cluster, "--pipeline-parallel-size", 2), ["--pipeline-parallel-size 2", "--tensor-parallel-size 2", "give one"]),
        (("serve", model, "--tensor-parallel-size", 2), ["--distributed-secret-file"]),
        (("serve", model, "--distributed-listen", "127.0.0.1:0"), ["--distributed-listen", "--tensor-parallel-size"]),
        (("bench", "lengths", model, *cluster, "--max-num-seqs", "1,8"), ["--max-num-seqs", "--tensor-parallel-size"]),
    ):
        port = ("--port", 0) if words[0] == "serve" else ()
        done = subprocess.run([str(word) for word in (octavo, *words, *port)], capture_output=True, text=True, timeout=60)
        assert done.returncode in (1, 2), (words, done.stderr)
        assert all(part in done.stderr for part in parts), (words, done.stderr)


# In network namespaces


def test_each_rank_in_a_network_namespace(start, reference):
    model, expected = reference("smollm2")
    try:
        with Namespaces(3) as place, start(model, 3, *TINY, place=place) as cluster:
            assert answers(cluster, requests()) == expected
            assert cluster.stop() == [0, 0, 0], cluster.logs()
    except NotPermitted as reason:
        pytest.skip(str(reason))


def test_bytes_per_token_are_those_of_the_prediction(start, smollm2_gguf):
    """Rank 0 has 2 of 3 KV heads, and half of the columns of the other three products of each of 30 layers; the rest is headers of
    messages and packets."""
    flags = ("--max-model-len", 1024, "--kv-memory", "256MiB", "--speculative-config", '{"method": "none"}')
    tokens = 200
    try:
        with Namespaces(2) as place, start(smollm2_gguf, 2, *flags, place=place, timeout=5) as cluster:
            cluster.complete(prompt="warm", max_tokens=8, model="model")
            before = place.sent_bytes(0)
            answer = cluster.complete(prompt="once", max_tokens=tokens, ignore_eos=True, temperature=0, model="model")
            assert answer.json()["usage"]["completion_tokens"] == tokens
            per_token = (place.sent_bytes(0) - before) / tokens
    except NotPermitted as reason:
        pytest.skip(str(reason))
    columns = 30 * (6 * 64 + 576 // 2 + 1536 // 2 + 576 // 2)
    assert columns * 2 < per_token < columns * 2 * 1.4, per_token
