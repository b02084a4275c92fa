#!/usr/bin/env python3
"""One trace through the router smg and Octavo: a client sends requests with `traceparent` to smg, and a collector gets the spans.

    tests/battery/fleet_traces.py [--requests 20]

Runs smg without and with --enable-trace, in front of two servers with a fake engine. smg sends its spans over gRPC, which is passed on
to the collector. Prints one JSON line per run: how many requests have the client's trace, which span is the parent of Octavo's, and the
names of smg's spans."""

import argparse
import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

REPO = Path(__file__).parents[2]
sys.path.insert(0, str(REPO / "tests/support_py"))

import smg_router  # noqa: E402
import tool_venv  # noqa: E402
from otlp_sink import Sink, Span  # noqa: E402
from server_kit import Server  # noqa: E402

GRPC_PACKAGES = ("grpcio==1.82.1",)


def ask(url: str, trace_id: str, caller: str, stream: bool) -> None:
    body = {"model": "fake", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4, "stream": stream}
    headers = {"Content-Type": "application/json", "traceparent": f"00-{trace_id}-{caller}-01", "tracestate": "vendor=1"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers), timeout=60) as answer:
        answer.read()


@contextlib.contextmanager
def grpc_port(sink: Sink):
    """A port that takes gRPC for the sink, or None if grpcio cannot be installed."""
    python = tool_venv.python("grpc-venv", GRPC_PACKAGES, ["-c", "import grpc"], with_dependencies=True)
    if python is None:
        yield None
        return
    process = subprocess.Popen([python, REPO / "tests/support_py/grpc_to_http.py", sink.url], stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def parent_of(span: Span, spans: list[Span], caller: str) -> str:
    if span.parent_id == caller:
        return "client"
    found = [other.name for other in spans if other.span_id == span.parent_id]
    return f"smg: {found[0]}" if found else "unknown"


def run(sink: Sink, urls: list[str], flags: list[str], requests: int) -> dict:
    traces = {secrets.token_hex(16): secrets.token_hex(8) for _ in range(requests)}
    with tempfile.TemporaryDirectory() as folder, smg_router.running(urls, "round_robin", Path(folder) / "smg.log", *flags) as url:
        for number, (trace_id, caller) in enumerate(traces.items()):
            ask(url, trace_id, caller, stream=number % 2 == 0)
        end = time.monotonic() + 30
        while len([trace for trace in traces if sink.requests(trace_id=trace)]) < requests and time.monotonic() < end:
            time.sleep(0.1)
    time.sleep(1)  # what smg sends when it ends
    spans = [span for span in sink.spans if span.trace_id in traces]
    ours = [span for span in spans if span.name == "llm_request"]
    others = Counter(span.name for span in spans if span.resource.get("service.name") != "octavo")
    return {"smg": " ".join(flags) or "defaults", "requests": requests, "in_the_clients_trace": len({span.trace_id for span in ours}),
            "spans_of_octavo": len(ours), "parents": Counter(parent_of(span, spans, traces[span.trace_id]) for span in ours),
            "states": Counter(span.proto.trace_state for span in ours), "spans_of_smg": others}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20)
    options = parser.parse_args()
    if smg_router.python() is None:
        print("fleet_traces: smg cannot be installed")
        return 1
    os.environ["OTEL_BSP_SCHEDULE_DELAY"] = "100"
    failed = False
    with Sink() as sink, Server.start(otlp_traces_endpoint=sink.url) as one, Server.start(otlp_traces_endpoint=sink.url) as two, \
            grpc_port(sink) as port:
        urls = [f"http://127.0.0.1:{server.port}" for server in (one, two)]
        runs = [[]] + ([["--enable-trace", "--otlp-traces-endpoint", f"127.0.0.1:{port}"]] if port else [])
        for flags in runs:
            figures = run(sink, urls, flags, options.requests)
            print(json.dumps(figures), flush=True)
            failed |= figures["in_the_clients_trace"] != options.requests or figures["spans_of_octavo"] != options.requests
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
