"""A collector for tests: takes OTLP spans over HTTP and keeps them."""

import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1 import trace_pb2


def value_of(value):
    """The Python value of an attribute."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(item) for item in value.array_value.values]
    return getattr(value, kind)


def values_of(attributes) -> dict:
    return {pair.key: value_of(pair.value) for pair in attributes}


@dataclass
class Span:
    proto: trace_pb2.Span
    resource: dict

    @property
    def name(self) -> str:
        return self.proto.name

    @property
    def trace_id(self) -> str:
        return self.proto.trace_id.hex()

    @property
    def span_id(self) -> str:
        return self.proto.span_id.hex()

    @property
    def parent_id(self) -> str:
        """Empty for the first span of a trace."""
        return self.proto.parent_span_id.hex()

    @property
    def attributes(self) -> dict:
        return values_of(self.proto.attributes)

    @property
    def error(self) -> str | None:
        """The message of a failed span."""
        failed = self.proto.status.code == trace_pb2.Status.STATUS_CODE_ERROR
        return self.proto.status.message if failed else None


def spans_of(request: ExportTraceServiceRequest) -> list[Span]:
    return [Span(span, values_of(group.resource.attributes)) for group in request.resource_spans for scope in group.scope_spans
            for span in scope.spans]


class Sink:
    """`delay`: seconds until it answers. `status`: what it answers with; spans are kept with 200 only."""

    def __init__(self, port: int = 0, delay: float = 0, status: int = 200):
        self.delay, self.status = delay, status
        self.spans: list[Span] = []
        self.headers: list[dict] = []  # of each request
        self.changed = threading.Condition()
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                sink.take(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1/traces"

    def __enter__(self) -> "Sink":
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        body, status = handler.rfile.read(int(handler.headers["Content-Length"])), self.status
        with self.changed:
            self.headers.append({name.lower(): value for name, value in handler.headers.items()} | {"path": handler.path})
            self.changed.notify_all()
        time.sleep(self.delay)
        if status == 200:
            assert handler.headers["Content-Type"] == "application/x-protobuf"
            self.add(spans_of(ExportTraceServiceRequest.FromString(body)))
        answer = ExportTraceServiceResponse().SerializeToString()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/x-protobuf")
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)

    def add(self, spans: list[Span]) -> None:
        with self.changed:
            self.spans += spans
            self.changed.notify_all()

    def requests(self, request_id: str | None = None, trace_id: str | None = None) -> list[Span]:
        """The spans of requests that have arrived."""
        return [span for span in list(self.spans) if span.name == "llm_request"
                and request_id in (None, span.attributes["gen_ai.request.id"]) and trace_id in (None, span.trace_id)]

    def wait_for(self, request_id: str, seconds: float = 30) -> Span:
        """The span of that request."""
        with self.changed:
            found = self.changed.wait_for(lambda: self.requests(request_id), seconds)
        assert found, f"no span of {request_id} among {[span.name for span in self.spans]}"
        return found[0]

    def parts_of(self, span: Span) -> dict[str, Span]:
        """Its children, by name."""
        return {child.name: child for child in self.spans if child.trace_id == span.trace_id and child.parent_id == span.span_id}
