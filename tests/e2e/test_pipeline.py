"""One model divided by layers over several processes: every byte equals that of one process, whatever the request, and refusals are named.

tests/e2e/test_pipeline_faults.py has ranks that end or hang, tests/e2e/test_launch.py the commands around it."""

import json
import os
import subprocess
import time

import embedders
import pytest
from cluster_kit import Cluster, Setup
from cluster_requests import LONG, SHORT, TINY, answers, requests
from network_places import Namespaces, NotPermitted
from prefix_replay import make_long_context
from processes import processor_seconds

FAMILIES = ["llama", "qwen3.5", "deepseek_v3", "gpt_oss"]


@pytest.fixture
def start(octavo, tmp_path):
    def start(model, ranks: int, *flags, **fields) -> Cluster:
        return Cluster(octavo, model, ranks, tmp_path, Setup(flags=flags, **fields))

    return start


@pytest.fixture(scope="module")
def tiny_reference(octavo, make_model, tmp_path_factory):
    """reference(family) returns a model and the answers of one process."""
    known = {}

    def reference(family: str):
        if family not in known:
            model = make_model(family, dtype="bfloat16")
            with Cluster(octavo, model, 1, tmp_path_factory.mktemp("one"), Setup(flags=TINY)) as one:
                known[family] = model, answers(one, requests(), together=1)
        return known[family]

    return reference


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_equal_those_of_one_process(start, tiny_reference, family, ranks):
    model, expected = tiny_reference(family)
    with start(model, ranks, *TINY) as cluster:
        assert answers(cluster, requests()) == expected
        assert cluster.stop() == [0] * ranks, cluster.logs()


def test_prefix_hits_and_chunks_change_nothing(start, tiny_reference):
    model, expected = tiny_reference("llama")
    with start(model, 3, *TINY, "--max-num-batched-tokens", 48) as cluster:
        assert answers(cluster, requests()) == expected
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


def test_preemption_changes_nothing(start, tiny_reference):
    model, _ = tiny_reference("llama")
    bodies = [{"model": "model", "prompt": LONG[:100 + number], "max_tokens": 150, "temperature": 1, "seed": number, "ignore_eos": True}
              for number in range(8)]
    with start(model, 1, *TINY) as one:
        expected = answers(one, bodies, together=1)
    with start(model, 2, *TINY, "--kv-memory", "1MiB", "--no-enable-prefix-caching") as cluster:
        assert answers(cluster, bodies, together=8) == expected
        assert cluster.metric("vllm:num_preemptions_total") > 0


@pytest.mark.parametrize("config", [{"method": "none"}, {"method": "ngram", "num_speculative_tokens": 4}])
def test_speculation_changes_nothing(start, tiny_reference, config):
    model, expected = tiny_reference("llama")
    with start(model, 2, *TINY, "--speculative-config", json.dumps(config)) as cluster:
        assert answers(cluster, requests(), together=2) == expected


def test_a_draft_model_on_rank_0(start, make_model, tiny_reference):
    model, expected = tiny_reference("llama")
    config = json.dumps({"model": str(make_model("llama", dtype="bfloat16", seed=3)), "num_speculative_tokens": 3})
    with start(model, 2, *TINY, "--speculative-config", config) as cluster:
        assert answers(cluster, requests(), together=2) == expected


def test_a_prediction_layer_on_the_last_rank(start, make_model):
    model = make_model("qwen3.5-mtp", dtype="bfloat16")
    with start(model, 1, *TINY, "--speculative-config", '{"method": "none"}') as one:
        expected = answers(one, requests(), together=1)
    for ranks in (2, 3):
        with start(model, ranks, *TINY, "--speculative-config", '{"method": "mtp"}') as cluster:
            assert answers(cluster, requests(), together=2) == expected


def test_embeddings(start, make_model, tmp_path):
    model = embedders.dress(make_model("qwen3"), tmp_path / "embedder", "mean_tokens")
    bodies = [{"model": "model", "input": LONG[:length]} for length in (1, 17, 64, 200)]
    flags = ("--dtype", "float32", "--max-model-len", 512, "--max-num-batched-tokens", 48, "--block-size", 8)
    with start(model, 1, *flags) as one:
        expected = answers(one, bodies, together=1, path="/v1/embeddings")
    with start(model, 3, *flags) as cluster:
        assert answers(cluster, bodies, path="/v1/embeddings") == expected


def test_a_real_model_in_a_chat(start, smollm2_gguf):
    flags = ("--max-model-len", 1024, "--kv-memory", "256MiB")
    bodies = [{"model": "model", "messages": [{"role": "user", "content": text}], "max_tokens": 40, "temperature": temperature, "seed": 1}
              for text in ("What is the capital of France?", "Write about the sea. " * 40) for temperature in (0, 1)]
    with start(smollm2_gguf, 1, *flags) as one:
        expected = answers(one, bodies, together=1, path="/v1/chat/completions")
    with start(smollm2_gguf, 3, *flags) as cluster:
        assert answers(cluster, bodies, path="/v1/chat/completions") == expected


def test_instruction_sets_may_differ(start, tiny_reference, instruction_sets):
    model, expected = tiny_reference("llama")
    lower = "avx2" if "avx2" in instruction_sets[:-1] else instruction_sets[0]
    for rank in (0, 1):
        with start(model, 2, *TINY, environment={rank: {"OCTAVO_ISA": lower}}) as cluster:
            assert answers(cluster, requests()) == expected


def test_pages_on_disk_survive_a_restart(start, tiny_reference, tmp_path):
    model, _ = tiny_reference("llama")
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


@pytest.mark.parametrize("ranks", [2, 3])
def test_bench_lengths_prints_the_same_hashes(octavo, make_model, tmp_path, ranks):
    model = make_model("llama", dtype="bfloat16")
    words = [octavo, "bench", "lengths", model, "--num-prompts", "10", "--max-tokens", "24", "--max-num-seqs", "8", "--temperature", "1",
             "--max-model-len", "512", "--json"]
    one = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    with BenchCluster(octavo, model, ranks, tmp_path, words[1:]) as bench:
        several = bench.result()
    hashes = [json.loads(text)["rows"][0]["texts_xxh64"] for text in (one.stdout, several)]
    assert hashes[0] == hashes[1]


class BenchCluster(Cluster):
    """Rank 0 is another command, whose stdout is its result."""

    def __init__(self, octavo, model, ranks, folder, words):
        super().__init__(octavo, model, ranks, folder)
        self.words = words

    def __enter__(self):
        self.start()
        return self

    def _spawn(self, rank, words):
        if rank != 0:
            return super()._spawn(rank, words)
        at = words.index(self.size_flag)
        command = [str(word) for word in (self.octavo, *self.words, *words[at:])]
        with self.log(0).open("w") as log:
            self.processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, stdin=subprocess.DEVNULL,
                                                   env=os.environ | {"OCTAVO_DISTRIBUTED_SECRET": self.secret}))
        return None

    def result(self) -> str:
        text, _ = self.processes[0].communicate(timeout=300)
        assert self.exit_codes(15) == [0] * self.ranks, self.logs()
        return text


def test_a_model_that_is_too_large_for_one_process_runs_in_two(start, make_model, octavo):
    model = make_model("llama", shape="medium", dtype="bfloat16")
    limit = memory_between(octavo, model)
    flags = ("--max-model-len", 256, "--memory-limit", limit, "--max-num-seqs", 4, "--max-num-batched-tokens", 64)
    alone = subprocess.run([str(word) for word in (octavo, "serve", model, "--port", 0, *flags)], capture_output=True, text=True, timeout=120)
    assert alone.returncode == 1 and "memory" in alone.stderr, alone.stderr
    with start(model, 2, *flags, worker_flags=("--memory-limit", limit)) as cluster:
        assert cluster.complete(prompt=SHORT, max_tokens=8, model="model").status == 200


def memory_between(octavo, model) -> str:
    """A limit that half of the model fits in, but not all of it."""
    words = [octavo, "generate", model, "-p", "a", "--raw", "--max-tokens", "1", "--max-model-len", "256", "--json"]
    plan = json.loads(subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout)["memory"]["plan"]
    fixed = plan["reserve_bytes"] + plan["step_bytes"] + plan["kv_bytes"]
    return str(int(fixed + 0.8 * plan["weights_bytes"]))


def test_an_idle_cluster_uses_no_processor_time(start, tiny_reference):
    model, _ = tiny_reference("llama")
    with start(model, 3, *TINY) as cluster:
        cluster.complete(prompt=SHORT, max_tokens=4, model="model")
        time.sleep(0.5)
        before = [processor_seconds(process.pid) for process in cluster.processes]
        time.sleep(3)
        used = [processor_seconds(process.pid) - start for process, start in zip(cluster.processes, before)]
        assert max(used) < 0.1, used


# Refusals: which rank differs, and what its own output and that of rank 0 say.


def refused(cluster: Cluster, said_by_rank_0: str = "") -> tuple[str, str]:
    """Starts a cluster of two ranks, of which the second must end with an error; returns both outputs, once rank 0 has said what it must."""
    try:
        cluster.start()
        assert cluster.processes[1].wait(60) != 0, cluster.logs()
        end = time.monotonic() + 10
        while said_by_rank_0 not in cluster.log(0).read_text() and time.monotonic() < end:
            time.sleep(0.05)
        return cluster.log(0).read_text(), cluster.log(1).read_text()
    finally:
        cluster.kill()


def test_another_secret_is_refused(start, tiny_reference):
    model, _ = tiny_reference("llama")
    _, worker = refused(start(model, 2, *TINY, secrets={1: "another secret of enough characters"}))
    assert "secret" in worker


def test_another_model_is_refused(start, make_model, tiny_reference):
    model, _ = tiny_reference("llama")
    server, worker = refused(start(model, 2, *TINY, models={1: make_model("llama", dtype="bfloat16", seed=9)}), "model")
    assert "model" in worker and "model" in server


def test_another_version_is_refused(start, octavo, tiny_reference, tmp_path):
    model, _ = tiny_reference("llama")
    version = subprocess.run([octavo, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    other = version[:-1] + str((int(version[-1]) + 1) % 10)
    program = tmp_path / "octavo"
    program.write_bytes(octavo.resolve().read_bytes().replace(version.encode() + b"\0", other.encode() + b"\0"))
    program.chmod(0o755)
    server, worker = refused(start(model, 2, *TINY, programs={1: program}), "version")
    assert version in worker and other in worker, worker
    assert "version" in server


def test_what_does_not_combine_is_refused_by_name(octavo, tiny_reference, tmp_path):
    model, _ = tiny_reference("llama")
    secret = tmp_path / "secret"
    secret.write_text("a secret of enough characters")
    cluster = ("--pipeline-parallel-size", 2, "--distributed-secret-file", secret)
    for words, parts in (
        (("serve", model, *cluster, "--enable-lora"), ["--enable-lora", "--pipeline-parallel-size"]),
        (("serve", model, model, *cluster), ["--pipeline-parallel-size", "one model"]),
        (("serve", model, "--pipeline-parallel-size", 2), ["--distributed-secret-file"]),
        (("serve", model, "--distributed-listen", "127.0.0.1:0"), ["--distributed-listen", "--pipeline-parallel-size"]),
        (("serve", model, *cluster, "--distributed-listen", "0.0.0.0:0"), ["--distributed-listen", "private"]),
        (("serve", model, *cluster, "--distributed-listen", "203.0.113.1:1"), ["--distributed-listen", "--distributed-allow-public"]),
        (("worker", model, "--connect", "203.0.113.1:1", "--rank", 1, "--distributed-secret-file", secret), ["--connect", "private"]),
        (("worker", model, "--rank", 1, "--distributed-secret-file", secret), ["--connect"]),
        (("worker", model, "--connect", "127.0.0.1:1", "--distributed-secret-file", secret), ["--rank"]),
        (("worker", model, "--connect", "127.0.0.1", "--rank", 1, "--distributed-secret-file", secret), ["--connect", "HOST:PORT"]),
        (("bench", "lengths", model, *cluster, "--max-num-seqs", "1,8"), ["--max-num-seqs", "--pipeline-parallel-size"]),
    ):
        port = ("--port", 0) if words[0] == "serve" else ()
        done = subprocess.run([str(word) for word in (octavo, *words, *port)], capture_output=True, text=True, timeout=60)
        assert done.returncode in (1, 2), (words, done.stderr)
        assert all(part in done.stderr for part in parts), (words, done.stderr)


def test_more_ranks_than_layers_are_refused(start, tiny_reference):
    model, _ = tiny_reference("llama")
    cluster = start(model, 6, *TINY)
    try:
        cluster.start()
        codes = cluster.exit_codes(60)
        assert None not in codes and 0 not in codes, cluster.logs()
        assert "at most 4 stages" in cluster.log(0).read_text()
    finally:
        cluster.kill()


# In network namespaces


def test_each_rank_in_a_network_namespace(start, tiny_reference):
    model, expected = tiny_reference("llama")
    try:
        with Namespaces(3) as place, start(model, 3, *TINY, place=place) as cluster:
            assert answers(cluster, requests()) == expected
            assert cluster.stop() == [0, 0, 0], cluster.logs()
    except NotPermitted as reason:
        pytest.skip(str(reason))


def test_bytes_per_token_are_those_of_the_prediction(start, smollm2_gguf):
    """Rows of 576 bfloat16 numbers go from rank 0 to rank 1; the rest is announcements, headers and heartbeats."""
    flags = ("--max-model-len", 1024, "--kv-memory", "256MiB", "--speculative-config", '{"method": "none"}')
    tokens = 400
    try:
        with Namespaces(2) as place, start(smollm2_gguf, 2, *flags, place=place, timeout=5) as cluster:
            cluster.complete(prompt="warm", max_tokens=8, model="model")
            before = place.sent_bytes(0)
            answer = cluster.complete(prompt="once", max_tokens=tokens, ignore_eos=True, temperature=0, model="model")
            assert answer.json()["usage"]["completion_tokens"] == tokens
            per_token = (place.sent_bytes(0) - before) / tokens
    except NotPermitted as reason:
        pytest.skip(str(reason))
    row = 576 * 2
    assert row < per_token < row + 1500, per_token
