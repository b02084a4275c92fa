"""A stub of OpenAI's API with fixed timing, so that a load generator's figures can be checked against it.

The number of ids in the prompt selects the kind of response; see ANSWERS."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FIRST_SECONDS, GAP_SECONDS = 0.05, 0.1  # of every streamed response


class StubServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.bodies: list[dict] = []  # of completion requests, in order of arrival
        self.headers: list[dict] = []
        self.connections = self.open = self.most_open = 0
        self.health = [200]  # successive statuses; the last one repeats
        self.hang_up = False  # close each connection after its response without announcing it

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @contextmanager
    def counted(self):
        with self.lock:
            self.open += 1
            self.most_open = max(self.most_open, self.open)
        try:
            yield
        finally:
            with self.lock:
                self.open -= 1


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # small writes would wait 40 ms for the client's acknowledgement
    server: StubServer

    def setup(self):
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path == "/health":
            with self.server.lock:
                status = self.server.health.pop(0) if len(self.server.health) > 1 else self.server.health[0]
            self.send_json(status, {})
        elif self.path == "/v1/models":
            self.send_json(200, {"object": "list", "data": [{"id": "stub-model"}, {"id": "other"}]})
        else:
            self.send_json(404, {"error": {"message": "no such path"}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            return self.send_json(200, {"count": len(body["prompt"].split())})
        with self.server.lock:
            self.server.bodies.append(body)
            self.server.headers.append(dict(self.headers))
        with self.server.counted():
            if self.path == "/v1/chat/completions":
                self.chat(body)
            else:
                ANSWERS.get(len(body["prompt"]), Handler.tokens)(self, body)
        if self.server.hang_up:
            self.close_connection = True

    def send_json(self, status: int, answer: dict):
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def piece(self, data: bytes):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, event: dict | str):
        self.piece(b"data: " + (event if isinstance(event, str) else json.dumps(event)).encode() + b"\n\n")

    def end_stream(self, body: dict, usage: bool = True):
        if usage:
            tokens = {"prompt_tokens": 1, "completion_tokens": body["max_tokens"]}
            self.event({"choices": [], "usage": tokens})
        self.event("[DONE]")
        self.piece(b"")

    def text_events(self, count: int):
        """Sends the first event after FIRST_SECONDS and the others GAP_SECONDS apart; the last has the finish reason."""
        for i in range(count):
            time.sleep(GAP_SECONDS if i else FIRST_SECONDS)
            reason = "length" if i + 1 == count else None
            self.event({"choices": [{"index": 0, "text": f" t{i}", "finish_reason": reason}]})

    def tokens(self, body: dict, usage: bool = True):
        self.begin_stream()
        self.text_events(body["max_tokens"])
        self.end_stream(body, usage)

    def no_usage(self, body: dict):
        self.tokens(body, usage=False)

    def chat(self, body: dict):
        self.begin_stream()
        self.event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
        for _ in range(body["max_tokens"]):
            self.event({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}]})
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.end_stream(body)

    def refused(self, body: dict):
        self.send_json(400, {"error": {"message": "the prompt is too long", "code": 400}})

    def busy(self, body: dict):
        self.send_json(503, {"error": {"message": "try again"}})

    def error_event(self, body: dict):
        self.begin_stream()
        self.text_events(1)
        self.event({"error": {"message": "out of pages"}})
        self.event("[DONE]")
        self.piece(b"")

    def early_close(self, body: dict):
        self.begin_stream()
        self.event({"choices": [{"index": 0, "text": "a", "finish_reason": None}]})
        self.close_connection = True

    def early_end(self, body: dict):
        self.begin_stream()
        self.event({"choices": [{"index": 0, "text": "a", "finish_reason": None}]})
        self.piece(b"")

    def single_bytes(self, body: dict):
        """One chunk per byte, and comments between the events."""
        self.begin_stream()
        text = b": hello\n\n" + b"".join(
            b'data: {"choices": [{"text": "\xc3\xa9", "finish_reason": null}]}\r\n\r\n: ping\n\n'
            for _ in range(body["max_tokens"]))
        for at in range(len(text)):
            self.piece(text[at:at + 1])
        self.end_stream(body)

    def until_closed(self, body: dict):
        """Responds like an HTTP/1.0 server: without chunks or a length."""
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        for _ in range(body["max_tokens"]):
            self.wfile.write(b'data: {"choices": [{"text": "a", "finish_reason": null}]}\n\n')
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def silent(self, body: dict):
        self.begin_stream()
        time.sleep(3)
        self.close_connection = True


ANSWERS = {
    11: Handler.refused,
    12: Handler.busy,
    13: Handler.error_event,
    14: Handler.early_close,
    15: Handler.early_end,
    16: Handler.single_bytes,
    17: Handler.no_usage,
    18: Handler.until_closed,
    19: Handler.silent,
}


@contextmanager
def running():
    server = StubServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
