"""`octavo bench serve` against a stub with scripted answers: its figures are compared with what the stub did."""

import json
import os
import random
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
import stub_server
from stub_server import FIRST_SECONDS, GAP_SECONDS

FIRST_MS, GAP_MS = FIRST_SECONDS * 1e3, GAP_SECONDS * 1e3
LATE_MS = 90  # tolerance for a busy machine; shorter than a gap, so that no figure can be off by a chunk


@pytest.fixture
def server():
    with stub_server.running() as stub:
        yield stub


@pytest.fixture
def bench(octavo, server):
    def run(*arguments, url: str | None = None, env: dict | None = None) -> subprocess.CompletedProcess:
        command = [str(a) for a in (octavo, "bench", "serve", "--base-url", url or server.url, *arguments)]
        clean = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=clean | (env or {}))

    return run


@pytest.fixture
def bench_json(bench):
    def run(*arguments, **keywords) -> dict:
        done = bench(*arguments, "--json", **keywords)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    return run


@pytest.fixture
def mix(tmp_path):
    """mix(*(prompt, output)) returns the flags that send requests of these lengths."""

    def write(*lengths) -> list:
        requests = [{"prompt_tokens": prompt, "output_tokens": output} for prompt, output in lengths]
        path = tmp_path / "mix.json"
        path.write_text(json.dumps({"requests": requests}))
        return ["--dataset-name", "lengths", "--dataset-path", path]

    return write


def random_flags(prompts: int, input_len: int, output_len: int) -> list:
    return ["--num-prompts", prompts, "--random-input-len", input_len, "--random-output-len", output_len]


TABLE = """\
============ Serving Benchmark Result ============
Successful requests:                     6
Failed requests:                         0
Maximum request concurrency:             4
Request rate configured (RPS):           40.00
Benchmark duration (s):                  N
Total input tokens:                      60
Total generated tokens:                  18
Request throughput (req/s):              N
Output token throughput (tok/s):         N
Peak output token throughput (tok/s):    N
Peak concurrent requests:                6.00
Total token throughput (tok/s):          N
---------------Time to First Token----------------
Mean TTFT (ms):                          N
Median TTFT (ms):                        N
P99 TTFT (ms):                           N
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          N
Median TPOT (ms):                        N
P99 TPOT (ms):                           N
---------------Inter-token Latency----------------
Mean ITL (ms):                           N
Median ITL (ms):                         N
P99 ITL (ms):                            N
==================================================
"""


def test_the_table_is_vllms(bench):
    done = bench(*random_flags(6, 10, 3), "--request-rate", "40", "--max-concurrency", "4")
    assert done.returncode == 0, done.stderr
    pattern = re.sub(r" N$", r" \\d+[.]\\d\\d", re.sub(r"([().])", r"\\\1", TABLE), flags=re.M)
    assert re.fullmatch(pattern, done.stdout), done.stdout


def test_optional_lines_need_their_flags(bench):
    done = bench(*random_flags(2, 10, 2), "--percentiles", "50,99.9", "--percentile-metrics", "ttft,e2el", "--goodput",
                 "e2el:60000")
    assert done.returncode == 0, done.stderr
    names = [line.split(":")[0] for line in done.stdout.splitlines()]
    assert names[1:3] == ["Successful requests", "Failed requests"]  # without --max-concurrency and --request-rate
    assert names[6:9] == ["Request throughput (req/s)", "Request goodput (req/s)", "Output token throughput (tok/s)"]
    assert names[12:] == [
        "---------------Time to First Token----------------",
        "Mean TTFT (ms)", "Median TTFT (ms)", "P50 TTFT (ms)", "P99.9 TTFT (ms)",
        "----------------End-to-end Latency----------------",
        "Mean E2EL (ms)", "Median E2EL (ms)", "P50 E2EL (ms)", "P99.9 E2EL (ms)", "=" * 50]


def test_times_are_those_of_the_chunks(bench_json):
    result = bench_json(*random_flags(4, 10, 4), "--save-detailed")
    assert FIRST_MS <= result["mean_ttft_ms"] < FIRST_MS + LATE_MS
    assert result["mean_itl_ms"] == pytest.approx(GAP_MS, abs=LATE_MS)
    assert result["median_tpot_ms"] == pytest.approx(GAP_MS, abs=LATE_MS)
    assert result["mean_e2el_ms"] == pytest.approx(FIRST_MS + 3 * GAP_MS, abs=LATE_MS)
    assert (result["completed"], result["failed"], result["model_id"]) == (4, 0, "stub-model")
    assert (result["total_input_tokens"], result["total_output_tokens"]) == (40, 16)
    assert result["output_throughput"] == pytest.approx(16 / result["duration"])
    assert result["total_token_throughput"] == pytest.approx(56 / result["duration"])
    assert result["request_throughput"] == pytest.approx(4 / result["duration"])
    assert result["max_output_tokens_per_s"] == pytest.approx(max(16, result["output_throughput"]))
    assert result["max_concurrent_requests"] == 4
    assert len(result["requests"]) == 4
    for row in result["requests"]:
        assert (row["prompt_tokens"], row["output_tokens"], row["error"]) == (10, 4, "")
        assert len(row["itl_ms"]) == 3 and sum(row["itl_ms"]) == pytest.approx(row["e2el_ms"] - row["ttft_ms"])
    assert result["mean_ttft_ms"] == pytest.approx(sum(row["ttft_ms"] for row in result["requests"]) / 4)


def test_requests_match_the_flags(bench_json, server):
    flags = [*random_flags(3, 10, 2), "--temperature", "0.5"]
    bench_json(*flags, env={"OPENAI_API_KEY": "secret"})
    bench_json(*flags, "--seed", "1", "--no-ignore-eos", "--model", "mine", "--vocab-size", "105")
    first, second = server.bodies[:3], server.bodies[3:]
    assert {"Bearer secret"} == {headers.get("Authorization") for headers in server.headers[:3]}
    assert {None} == {headers.get("Authorization") for headers in server.headers[3:]}
    for body in first:
        assert all(100 <= token < 1000 for token in body.pop("prompt"))
        assert body == {"model": "stub-model", "max_tokens": 2, "temperature": 0.5, "ignore_eos": True, "stream": True,
                        "stream_options": {"include_usage": True}}
    for body in second:
        assert body["model"] == "mine" and "ignore_eos" not in body
        assert all(100 <= token < 105 for token in body["prompt"])


def test_concurrency_is_bounded_and_connections_are_kept(bench_json, server):
    result = bench_json(*random_flags(9, 10, 1), "--max-concurrency", "3")
    assert result["completed"] == 9
    assert server.most_open == 3
    assert server.connections == 1 + 3  # /v1/models uses its own


def test_a_rate_spreads_the_requests(bench_json):
    flags = [*random_flags(20, 10, 1), "--request-rate", "40", "--save-detailed"]
    starts = [row["start_s"] for row in bench_json(*flags)["requests"]]
    assert starts == sorted(starts)
    assert starts[-1] == pytest.approx(20 / 40, abs=LATE_MS / 1e3)
    again = [row["start_s"] for row in bench_json(*flags)["requests"]]
    assert again == pytest.approx(starts, abs=LATE_MS / 1e3)


def test_failures_are_counted_by_reason(bench, mix):
    lengths = [(10, 2), (11, 2), (11, 2), (12, 2), (13, 2), (14, 2), (15, 2), (10, 2)]
    done = bench(*mix(*lengths))
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Successful requests: +2$", done.stdout, re.M)
    assert re.search(r"^Failed requests: +6$", done.stdout, re.M)
    table, failures = done.stdout.split("Failed requests by reason:\n")
    assert sorted(failures.splitlines()) == sorted([
        "      2  HTTP 400: the prompt is too long",
        "      1  HTTP 503: try again",
        "      1  error event: out of pages",
        "      1  connection closed early",
        "      1  the stream ended before the response was complete"])
    assert failures.startswith("      2  ")  # the most frequent first
    assert re.search(r"^Total input tokens: +20$", table, re.M)  # failed requests are not counted


def test_all_failed_is_status_1(bench, mix):
    done = bench(*mix((11, 2)), "--json")
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert (result["completed"], result["failed"]) == (0, 1)
    assert result["failures"] == [{"reason": "HTTP 400: the prompt is too long", "requests": 1}]


def test_all_failed_prints_the_reason_instead_of_zeros(bench, mix):
    done = bench(*mix((11, 2)))
    assert done.returncode == 1
    assert "Output token throughput" not in done.stdout
    assert done.stdout.endswith("Failed requests by reason:\n      1  HTTP 400: the prompt is too long\n")


def test_streams_may_be_cut_anywhere(bench_json, mix):
    result = bench_json(*mix((16, 5), (18, 3)))
    assert (result["completed"], result["failures"]) == (2, [])
    assert result["total_output_tokens"] == 8


def test_chunks_are_counted_where_usage_is_missing(bench, mix):
    done = bench(*mix((17, 3), (10, 2)))
    assert re.search(r"^Total generated tokens: +5$", done.stdout, re.M), done.stdout
    assert done.stdout.endswith("The server sent no usage for 1 requests: their token counts are chunk counts.\n")


def test_goodput_counts_requests_within_every_bound(bench_json, mix):
    flags = mix((10, 1), (10, 2), (10, 6))

    def good(*bounds: str) -> int:
        result = bench_json(*flags, "--goodput", *bounds)
        return round(result["request_goodput"] * result["duration"])

    assert good("ttft:10000") == 3
    assert good("ttft:10") == 0
    assert good("ttft:10000", f"e2el:{FIRST_MS + 3 * GAP_MS}") == 2
    assert good("tpot:50", "e2el:10000") == 1  # only an answer of one token has no gap


def test_a_silent_server_times_out(bench, mix):
    done = bench(*mix((19, 2)), "--timeout", "0.3")
    assert done.returncode == 1
    assert "1  timed out after 0.3 s" in done.stdout


def test_a_connection_closed_while_idle_is_not_a_failure(bench_json, server):
    server.hang_up = True
    result = bench_json(*random_flags(6, 10, 1), "--max-concurrency", "1")
    assert (result["completed"], result["failures"]) == (6, [])
    assert len(server.bodies) == 6
    assert server.connections == 1 + 6


def test_sharegpt_is_counted_by_the_server_and_sent_as_chat(bench_json, server, tmp_path):
    def turns(prompt: int, answer: int) -> dict:
        return {"conversations": [{"from": "human", "value": "word " * prompt}, {"from": "gpt", "value": "word " * answer}]}

    path = tmp_path / "talks.json"
    path.write_text(json.dumps([turns(3, 9), turns(9, 3), turns(1025, 9), turns(5, 6), turns(7, 8)]))
    result = bench_json("--dataset-name", "sharegpt", "--dataset-path", path, "--endpoint", "/v1/chat/completions")
    assert (result["completed"], result["total_input_tokens"], result["total_output_tokens"]) == (2, 12, 14)
    assert {body["max_tokens"] for body in server.bodies} == {6, 8}
    assert all(body["messages"][0]["content"].startswith("word ") for body in server.bodies)
    assert not any("ignore_eos" in body for body in server.bodies)


def vllm_picks(entries: list[dict], count: int, seed: int, output_len: int | None = None) -> list[str]:
    """The prompts that vLLM's ShareGPTDataset selects, for a tokenizer that counts words."""
    entries = [entry for entry in entries if len(entry.get("conversations", [])) >= 2]
    random.Random(seed).shuffle(entries)
    pairs = [[turn["value"] for turn in entry["conversations"][:2]] for entry in entries]
    lengths = [(prompt, len(prompt.split()), output_len or len(answer.split())) for prompt, answer in pairs]
    least = 4 if output_len is None else 0
    return [text for text, prompt, answer in lengths if 4 <= prompt <= 1024 and answer >= least and prompt + answer <= 2048][:count]


def test_sharegpt_picks_are_vllms(bench_json, server, tmp_path):
    draw = random.Random(5)

    def entry(i: int) -> dict:
        turns = [f"{i} " + "word " * draw.randint(1, 30) for _ in range(draw.choice([1, 2, 2, 2, 2, 2, 2, 3]))]
        return {"conversations": [{"from": draw.choice(["human", "gpt"]), "value": turn} for turn in turns]}

    entries = [entry(i) for i in range(1500)] + [{"id": "empty"}]
    (tmp_path / "talks.json").write_text(json.dumps(entries))
    flags = ["--dataset-name", "sharegpt", "--dataset-path", tmp_path / "talks.json", "--endpoint", "/v1/chat/completions",
             "--max-concurrency", "1", "--sharegpt-output-len", "1"]
    assert bench_json(*flags, "--num-prompts", "1000", "--seed", "7")["completed"] == 1000
    picks = [body["messages"][0]["content"] for body in server.bodies]
    assert picks == vllm_picks(entries, 1000, 7, output_len=1)

    server.bodies.clear()
    assert bench_json(*flags[:-2], "--num-prompts", "50")["completed"] == 50
    assert [body["messages"][0]["content"] for body in server.bodies] == vllm_picks(entries, 50, 0)


@pytest.mark.parametrize("backend", ["vllm", "openai", "openai-chat"])
def test_vllms_backend_is_accepted_and_reported(backend, bench, server):
    done = bench("--backend", backend, *random_flags(1, 10, 1), "--endpoint", "/v1/completions")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == \
        f"octavo: --backend {backend}: ignored; --endpoint selects the API, here /v1/completions"


def test_sharegpt_can_be_counted_locally(bench_json, smollm2_gguf, server, tmp_path):
    talk = [{"from": "human", "value": "Why is the sky blue?"}, {"from": "gpt", "value": "Because it is not green."}]
    (tmp_path / "talks.json").write_text(json.dumps([{"conversations": talk}]))
    result = bench_json("--dataset-name", "sharegpt", "--dataset-path", tmp_path / "talks.json", "--tokenizer", smollm2_gguf)
    assert (result["total_input_tokens"], server.bodies[0]["max_tokens"]) == (6, 6)
    assert server.bodies[0]["prompt"] == "Why is the sky blue?"


def test_shared_prefixes_are_shared(bench_json, server):
    bench_json("--dataset-name", "shared-prefix", "--shared-prefix-len", "30", "--shared-suffix-len", "5",
               "--shared-prefix-groups", "2", "--num-prompts", "6", "--random-output-len", "1")
    prompts = [body["prompt"] for body in server.bodies]
    assert {len(prompt) for prompt in prompts} == {35}
    assert len({tuple(prompt[:30]) for prompt in prompts}) == 2
    assert len({tuple(prompt[30:]) for prompt in prompts}) == 6


def test_the_plot_shows_every_request(bench, mix, tmp_path):
    done = bench(*mix((10, 2), (10, 3), (11, 1)), "--plot", tmp_path / "load.svg")
    assert done.returncode == 0, done.stderr
    picture = ElementTree.parse(tmp_path / "load.svg").getroot()
    classes = [element.get("class") for element in picture.iter()]
    assert (classes.count("ttft"), classes.count("failed"), classes.count("output")) == (2, 1, 1)


def test_it_waits_for_health(bench, server):
    server.health = [503, 503, 200]
    assert bench(*random_flags(1, 10, 1), "--ready-timeout", "20").returncode == 0
    assert server.health == [200]
    server.health = [503]
    done = bench(*random_flags(1, 10, 1), "--ready-timeout", "0.3")
    assert done.returncode == 1 and "not ready" in done.stderr


MISTAKES = {
    "ids for chat": (["--endpoint", "/v1/chat/completions"], "token ids"),
    "no path": (["--dataset-name", "sharegpt"], "--dataset-path"),
    "no such file": (["--dataset-name", "lengths", "--dataset-path", "none.json"], "cannot be read"),
    "goodput": (["--goodput", "itl:5"], "ttft:500"),
    "https": (["--base-url", "https://localhost"], "http"),
    "no server": (["--base-url", "http://127.0.0.1:9"], "connection refused"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_clear_line(name, octavo, server):
    flags, fragment = MISTAKES[name]
    command = [str(octavo), "bench", "serve", *([] if "--base-url" in flags else ["--base-url", server.url]), *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and fragment in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1 and not done.stdout
