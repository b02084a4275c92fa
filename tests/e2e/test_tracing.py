"""Distributed tracing: spans of requests arrive at a collector with vLLM's names, in the trace of the caller."""

import contextlib
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest
from fleet import free_port
from otlp_sink import Sink
from running_server import running
from server_kit import Server, fake_server_path, request_bytes

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{CALLER}-01"
SERVER_KIND = 2
LATENCIES = {f"gen_ai.latency.{name}" for name in (
    "e2e", "time_in_queue", "time_to_first_token", "time_in_model_prefill", "time_in_model_decode", "time_in_model_inference")}
CHAT = [{"role": "user", "content": "hello"}]
SAMPLING = {"temperature": 0.7, "top_p": 0.9}
CASES = {
    "chat": ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 8} | SAMPLING),
    "chat streamed": ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 8, "stream": True} | SAMPLING),
    "completions": ("/v1/completions", {"prompt": "hello", "max_tokens": 8} | SAMPLING),
    "completions streamed": ("/v1/completions", {"prompt": "hello", "max_tokens": 8, "stream": True} | SAMPLING),
    "messages": ("/v1/messages", {"messages": CHAT, "max_tokens": 8} | SAMPLING),
    "messages streamed": ("/v1/messages", {"messages": CHAT, "max_tokens": 8, "stream": True} | SAMPLING),
    "responses": ("/v1/responses", {"input": "hello", "max_output_tokens": 8} | SAMPLING),
    "responses streamed": ("/v1/responses", {"input": "hello", "max_output_tokens": 8, "stream": True} | SAMPLING),
}


@contextlib.contextmanager
def environment(**variables: str):
    """Of processes that are started inside."""
    old = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        del os.environ[name]
    os.environ.update({"OTEL_BSP_SCHEDULE_DELAY": "20"} | variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(old)


@contextlib.contextmanager
def traced(endpoint: str, env: dict | None = None, **flags):
    """A fake server, and the file of its log."""
    with tempfile.TemporaryFile("w+") as log, environment(**(env or {})):
        with Server.start(stderr=log, otlp_traces_endpoint=endpoint, **flags) as server:
            server.log = lambda: (log.seek(0), log.read())[1]
            yield server


@pytest.fixture(scope="module")
def sink():
    with Sink() as sink:
        yield sink


@pytest.fixture(scope="module")
def server(sink):
    headers = {"OTEL_EXPORTER_OTLP_HEADERS": "x-team=search", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test"}
    with traced(sink.url, headers) as server:
        yield server


def ask(server: Server, request_id: str, traceparent: str | None = PARENT, path: str = "/v1/completions", body: dict | None = None,
        **headers: str):
    fields = {"X-Request-Id": request_id} | ({"traceparent": traceparent} if traceparent else {}) | headers
    answer = server.ask("POST", path, body or {"prompt": "hello", "max_tokens": 4}, fields)
    assert answer.status == 200, answer.body
    return answer


@pytest.mark.parametrize("name", CASES)
def test_a_span_has_vllms_attributes_and_the_callers_trace(server, sink, name):
    path, body = CASES[name]
    answer = ask(server, f"id-{name.replace(' ', '-')}", path=path, body=body, tracestate="vendor=1")
    span = sink.wait_for(f"id-{name.replace(' ', '-')}")
    assert (span.trace_id, span.parent_id, span.proto.trace_state, span.proto.kind) == (TRACE, CALLER, "vendor=1", SERVER_KIND)
    found = span.attributes
    assert found["gen_ai.response.model"] == "fake"
    assert (found["gen_ai.request.temperature"], found["gen_ai.request.top_p"]) == (0.7, 0.9)
    assert (found["gen_ai.request.max_tokens"], found["gen_ai.request.n"], found["gen_ai.usage.num_sequences"]) == (8, 1, 1)
    assert found["gen_ai.response.finish_reasons"] in (["length"], ["stop"])
    if "streamed" not in name:
        usage = answer.json()["usage"]
        assert found["gen_ai.usage.prompt_tokens"] == usage.get("prompt_tokens", usage.get("input_tokens", 0)
                                                               + usage.get("cache_read_input_tokens", 0))
        assert found["gen_ai.usage.completion_tokens"] == usage.get("completion_tokens", usage.get("output_tokens"))
    assert set(found) >= LATENCIES and all(0 <= found[latency] <= found["gen_ai.latency.e2e"] for latency in LATENCIES)
    assert found["gen_ai.latency.e2e"] == pytest.approx((span.proto.end_time_unix_nano - span.proto.start_time_unix_nano) / 1e9, abs=1e-3)
    assert abs(span.proto.start_time_unix_nano / 1e9 - time.time()) < 60
    assert span.error is None and span.resource["service.name"] == "octavo" and span.resource["deployment.environment"] == "test"
    assert sink.headers[-1]["x-team"] == "search" and sink.headers[-1]["path"] == "/v1/traces"


def test_the_parts_of_a_request_follow_each_other(server, sink):
    ask(server, "parts")
    span = sink.wait_for("parts")
    parts = sink.parts_of(span)
    times = [(parts[name].proto.start_time_unix_nano, parts[name].proto.end_time_unix_nano) for name in ("queue", "prefill", "decode")]
    assert times[0][0] == span.proto.start_time_unix_nano and times[2][1] <= span.proto.end_time_unix_nano
    assert times[0][1] == times[1][0] <= times[1][1] == times[2][0] <= times[2][1]


def test_a_span_counts_all_sequences_and_cached_tokens(server, sink):
    prompt = "a prompt of several pages " * 8
    for name in ("cold", "warm"):
        ask(server, name, body={"prompt": [prompt, prompt], "max_tokens": 3, "n": 2, "ignore_eos": True})
    found = sink.wait_for("warm").attributes
    assert (found["gen_ai.usage.num_sequences"], found["gen_ai.request.n"], found["gen_ai.usage.completion_tokens"]) == (4, 2, 12)
    assert found["gen_ai.response.finish_reasons"] == ["length"] * 4
    assert 0 < found["gen_ai.usage.cache_read.input_tokens"] < found["gen_ai.usage.prompt_tokens"]


@pytest.mark.parametrize("header", ["", "00-short", PARENT.upper(), f"{PARENT}-more", f"00-{'0' * 32}-{CALLER}-01", f"ff{PARENT[2:]}",
                                    PARENT.replace("0af", "0xf")])
def test_a_malformed_traceparent_starts_a_new_trace(server, sink, header):
    request_id = f"malformed-{hash(header) & 0xFFFFFFFF:08x}"
    ask(server, request_id, header or None, tracestate="vendor=1")
    span = sink.wait_for(request_id)
    assert span.trace_id != TRACE and span.parent_id == "" and span.proto.trace_state == ""


def test_two_traceparents_start_a_new_trace(server, sink):
    request = request_bytes("POST", "/v1/completions", {"prompt": "hello", "max_tokens": 2},
                            {"traceparent": PARENT, "Traceparent": PARENT, "X-Request-Id": "two", "Connection": "close"})
    with server.wire() as wire:
        assert wire.send(request).answer().status == 200
    assert sink.wait_for("two").parent_id == ""


def test_an_unsampled_caller_gets_no_span(server, sink):
    ask(server, "quiet", PARENT[:-2] + "00")
    ask(server, "loud")
    sink.wait_for("loud")
    assert not sink.requests("quiet")


def test_a_client_that_leaves_sets_the_status(server, sink):
    body = {"prompt": "hello", "max_tokens": 500, "ignore_eos": True, "stream": True}
    with traced(sink.url, step_ms=20) as slow, slow.wire() as wire:
        wire.send(request_bytes("POST", "/v1/completions", body, {"X-Request-Id": "left", "traceparent": PARENT}))
        wire.head()
        wire.cut()
        span = sink.wait_for("left")
    assert span.error == "the client disconnected" and span.parent_id == CALLER
    assert span.attributes["gen_ai.response.finish_reasons"] == ["abort"]


def test_the_deadline_of_a_request_sets_the_status(server, sink):
    with traced(sink.url, step_ms=20) as slow:
        answer = slow.ask("POST", "/v1/completions", {"prompt": "hello", "max_tokens": 500, "ignore_eos": True},
                          {"X-Request-Id": "late", "x-request-timeout": "0.2"})
        assert answer.status == 504
        assert sink.wait_for("late").error == answer.error["message"]


def test_spans_are_sent_before_the_server_ends(sink):
    with traced(sink.url, {"OTEL_BSP_SCHEDULE_DELAY": "60000", "OTEL_SERVICE_NAME": "mine"}) as server:
        ask(server, "last")
        server.terminate()
        assert server.process.wait(20) == 0
        assert sink.wait_for("last", 1).resource["service.name"] == "mine"


def test_the_ratio_of_the_sampler_holds_for_requests_without_a_caller(sink):
    with traced(sink.url, {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}) as server:
        ask(server, "ratio-0", None)
        ask(server, "ratio-parent")
        sink.wait_for("ratio-parent")
        assert not sink.requests("ratio-0")


def outage_lines(server: Server) -> list[str]:
    return re.findall(r"the trace collector at .*", server.log())


def test_a_collector_that_is_away_is_logged_once_and_requests_go_on():
    with traced(f"http://127.0.0.1:{free_port()}") as server:
        for number in range(3):
            began = time.monotonic()
            ask(server, f"away-{number}")
            assert time.monotonic() - began < 1
            time.sleep(0.5)
        began = time.monotonic()
        server.terminate()
        assert server.process.wait(20) == 0 and time.monotonic() - began < 4
        [line] = outage_lines(server)
        assert "/v1/traces does not accept spans" in line and "4318" in line


def test_a_collector_that_comes_back_gets_spans_again():
    with Sink(status=400) as sink, traced(sink.url) as server:
        ask(server, "refused")
        with sink.changed:
            assert sink.changed.wait_for(lambda: sink.headers, 20)
        sink.status = 200
        ask(server, "taken")
        sink.wait_for("taken")
        server.terminate()
        server.process.wait(20)
        begin, end = outage_lines(server)
        assert "it answered 400" in begin and "accepts spans again" in end


def test_a_slow_collector_delays_neither_requests_nor_the_end_for_long():
    with Sink(delay=30) as sink, traced(sink.url, {"OTEL_BSP_MAX_QUEUE_SIZE": "2"}) as server:
        ask(server, "first")
        with sink.changed:
            assert sink.changed.wait_for(lambda: sink.headers, 20)  # the exporter waits for its answer
        began = time.monotonic()
        for number in range(20):  # more than the queue holds
            ask(server, f"slow-{number}")
        assert time.monotonic() - began < 5
        began = time.monotonic()
        server.terminate()
        assert server.process.wait(20) == 0 and time.monotonic() - began < 5
        assert "did not accept the last spans within 2000 ms" in server.log()


def test_requests_through_a_front_stay_in_their_trace(build_dir, sink, tmp_path):
    with environment():
        command = [fake_server_path(), "--uds", tmp_path / "child", "--behind-front", "--otlp-traces-endpoint", sink.url]
        child = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline().startswith("listening")
        with Server.start(build_dir / "tests" / "fake_front", child=f"fake={tmp_path / 'child'}=fake") as front:
            ask(front, "through-front", tracestate="vendor=1", body={"model": "fake", "prompt": "hello", "max_tokens": 4})
            span = sink.wait_for("through-front")
    finally:
        child.kill()
        child.wait()
    assert (span.trace_id, span.parent_id, span.proto.trace_state) == (TRACE, CALLER, "vendor=1")
    assert len(sink.requests("through-front")) == 1


def post(url: str, body: dict, request_id: str) -> dict:
    headers = {"Content-Type": "application/json", "traceparent": PARENT, "X-Request-Id": request_id}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=120) as response:
        return json.load(response)


def test_octavo_serve_hands_the_flag_to_the_processes_of_its_models(octavo, make_model, sink):
    models = [make_model("qwen3"), make_model("llama")]
    with environment(), running(octavo, models, "--otlp-traces-endpoint", sink.url) as server:
        for number, model in enumerate(models):
            body = {"model": model.name, "prompt": [5, 6, 7], "max_tokens": 3, "ignore_eos": True}
            answer = post(f"{server.url}/v1/completions", body, f"model-{number}")
            span = sink.wait_for(f"model-{number}")
            assert (span.trace_id, span.parent_id) == (TRACE, CALLER)
            assert span.attributes["gen_ai.response.model"] == answer["model"]
            assert span.attributes["gen_ai.usage.completion_tokens"] == 3


def serve_error(octavo, model, *flags, **env) -> str:
    with environment(**env):
        done = subprocess.run([octavo, "serve", model, "--port", "0", *flags], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    return done.stderr


def test_settings_that_cannot_work_are_refused(octavo, make_model):
    model = make_model("qwen3")
    assert "http://localhost:4318/v1/traces" in serve_error(octavo, model, "--otlp-traces-endpoint", "grpc://localhost:4317")
    url = ("--otlp-traces-endpoint", "http://localhost:4318")
    assert "OTEL_EXPORTER_OTLP_PROTOCOL=grpc" in serve_error(octavo, model, *url, OTEL_EXPORTER_OTLP_PROTOCOL="grpc")


def test_nothing_is_started_without_the_flag(octavo, make_model):
    def threads(*flags, **env) -> tuple[set[str], str]:
        with environment(**env), running(octavo, make_model("qwen3"), *flags) as server:
            tasks = Path(f"/proc/{server.process.pid}/task")
            return {(task / "comm").read_text().strip() for task in tasks.iterdir()}, "".join(server.lines)

    if not Path("/proc/self/task").exists():
        pytest.skip("needs /proc")
    url = f"http://127.0.0.1:{free_port()}"
    names, summary = threads(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=url)
    assert not any("OpenTelemetry" in name for name in names) and "traces" not in summary
    names, _ = threads("--otlp-traces-endpoint", url)
    assert any("OpenTelemetry" in name for name in names)
    names, summary = threads("--otlp-traces-endpoint", url, OTEL_SDK_DISABLED="true")
    assert not any("OpenTelemetry" in name for name in names) and "traces" not in summary
