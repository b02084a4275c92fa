"""Serves the page and imitates the endpoints it calls, so that the page can be tried without a model.

The prompt's first word selects the kind of answer: see page_answers.py, and: error, cut, think. Other
prompts get a short plain answer.

usage: page_stub.py [PORT]   (stops with Ctrl-C)"""

import json
import re
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from page_answers import BY_WORD, PLAIN

PAGE = Path(__file__).resolve().parents[2] / "src" / "server" / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"

@dataclass
class Stub:
    """What the stub server reports, and the requests it received."""

    api_key: str | None = None
    template: bool = True  # whether the model has a chat template
    metrics: bool = True
    images: bool = False  # whether the model takes images
    model: str = "stub/tiny-model"
    aliases: list[str] = field(default_factory=list)  # other names of the model
    defaults: dict = field(default_factory=lambda: {"temperature": 0.699999988, "top_p": 0.95, "top_k": 40, "min_p": 0.05,
                                                    "repetition_penalty": 1.0})
    memory: bool = True  # whether /v1/octavo/memory exists
    states: dict[str, str] = field(default_factory=dict)  # several models by name: "loaded", "unloaded" or "loading"
    progress: dict[str, float] = field(default_factory=dict)  # of those that are loading; each listing moves it on
    token_seconds: float = 0.0
    url: str = ""
    bodies: list[dict] = field(default_factory=list)  # of the POST requests that were answered
    generated: int = 0
    running: int = 0
    dropped: int = 0  # answers whose client disconnected

    def names(self) -> list[str]:
        return list(self.states) or [self.model, *self.aliases]

    def load(self, name: str) -> None:
        if self.states.get(name) == "unloaded":
            self.states[name], self.progress[name] = "loading", 0.0

    def go_on_loading(self) -> None:
        for name in [name for name, state in self.states.items() if state == "loading"]:
            self.progress[name] += 0.4
            if self.progress[name] >= 1:
                self.states[name] = "loaded"


def _first_word(text: str) -> str:
    return re.match(r"\s*(\w*)", text)[1]


def _text_of(content: str | list) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _answer(text: str) -> str:
    return BY_WORD.get(_first_word(text), PLAIN.format(text))


def _card(stub: Stub, name: str) -> dict:
    card = {"id": name, "root": "/models/tiny", "max_model_len": 8192, "default_sampling_params": stub.defaults}
    if stub.images:
        card["architecture"] = {"input_modalities": ["text", "image"]}
    if name not in stub.states:
        return card
    status = {"value": stub.states[name]}
    if status["value"] == "loading":
        status["progress"] = {"stages": ["text_model"], "current": "text_model", "value": stub.progress[name]}
    if status["value"] != "loaded":
        return {"id": name, "root": f"/models/{name}", "status": status}
    return {**card, "root": f"/models/{name}", "status": status}


def _metrics(stub: Stub) -> str:
    labels = f'model_name="{stub.model}",engine="0"'
    referenced = 40 + stub.generated % 200
    lines = [
        "# HELP vllm:num_requests_running Requests in the batch.",
        "# TYPE vllm:num_requests_running gauge",
        f"vllm:num_requests_running{{{labels}}} {stub.running}",
        f"vllm:num_requests_waiting{{{labels}}} 0.0",
        f"vllm:kv_cache_usage_perc{{{labels}}} {referenced / 1024}",
        f"vllm:generation_tokens_total{{{labels}}} {stub.generated}",
        f"vllm:prefix_cache_queries_total{{{labels}}} 4.0e+02",
        f"vllm:prefix_cache_hits_total{{{labels}}} 248",
        f'octavo:pages{{{labels},state="referenced"}} {referenced}',
        f'octavo:pages{{{labels},state="cached"}} 310',
        f'octavo:pages{{{labels},state="free"}} {1024 - 310 - referenced}',
        'vllm:request_seconds_bucket{odd="a}\\"b",le="+Inf"} 3',
        "a line that is not a metric",
    ]
    return "\n".join(lines) + "\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def stub(self) -> Stub:
        return self.server.stub

    def log_message(self, *_):
        pass

    def reply(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: int, message: str, param: str | None = None) -> None:
        self.reply(status, json.dumps({"error": {"message": message, "param": param, "code": status}}).encode())

    def allowed(self) -> bool:
        if self.stub.api_key is None or self.headers["Authorization"] == f"Bearer {self.stub.api_key}":
            return True
        self.refuse(401, "Unauthorized")
        return False

    def do_GET(self) -> None:
        if self.path == "/":
            return self.reply(200, (PAGE / "index.html").read_bytes(), TYPES[".html"])
        if self.path.startswith("/page/"):
            file = (PAGE / self.path.removeprefix("/page/")).resolve()
            if file.is_relative_to(PAGE) and file.is_file() and file.suffix in TYPES:
                return self.reply(200, file.read_bytes(), TYPES[file.suffix])
        if self.path == "/metrics" and self.stub.metrics:
            return self.reply(200, _metrics(self.stub).encode(), "text/plain; version=0.0.4")
        if self.path == "/v1/models":
            if self.allowed():
                self.stub.go_on_loading()
                self.reply(200, json.dumps({"data": [_card(self.stub, name) for name in self.stub.names()]}).encode())
            return None
        if self.path == "/v1/octavo/memory" and self.stub.memory:
            return self.reply(200, json.dumps({"plan_bytes": {"pages": 1024 * 2_000_000}, "pages": {"total": 1024}}).encode())
        return self.refuse(404, "no such page")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.allowed():
            return
        if self.path in ("/models/load", "/models/unload"):
            return self.load_or_unload(body["model"])
        self.stub.load(body["model"])
        while self.stub.states.get(body["model"]) == "loading":
            time.sleep(0.02)
        chat = self.path == "/v1/chat/completions"
        if chat and not self.stub.template:
            return self.refuse(400, "This model has no chat template.", "messages")
        self.stub.bodies.append(body)
        self.stub.running += 1
        try:
            self.stream(_text_of(body["messages"][-1]["content"]) if chat else body["prompt"], chat)
        except (BrokenPipeError, ConnectionResetError):
            self.stub.dropped += 1
            self.close_connection = True
        finally:
            self.stub.running -= 1

    def load_or_unload(self, name: str) -> None:
        if self.path == "/models/load":
            self.stub.load(name)
        else:
            self.stub.states[name] = "unloaded"
        self.reply(200, json.dumps({"success": True}).encode())

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, payload: dict | str) -> None:
        text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
        data = f": a comment\r\ndata: {text}\r\n\r\n".encode()
        # Sends two chunks, to split lines and multi-byte characters; the pause keeps the chunks apart.
        several = re.search(rb"[\xc0-\xff]", data)
        cut = several.end() if several else 19
        self.chunk(data[:cut])
        if several:
            time.sleep(0.02)
        self.chunk(data[cut:])

    def stream(self, text: str, chat: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        word = _first_word(text)
        pieces = [piece + " " for piece in _answer(text).split(" ")]
        pieces[-1] = pieces[-1][:-1]
        pause = max(self.stub.token_seconds, 0.02 if word == "slow" else 0)
        if chat:
            self.event({"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
        if word == "think":
            self.event({"choices": [{"index": 0, "delta": {"reasoning": "Let me see."}}]})
        for index, piece in enumerate(pieces):
            time.sleep(pause)
            self.stub.generated += 1
            self.event({"choices": [{"index": 0, **({"delta": {"content": piece}} if chat else {"text": piece})}]})
            if index == 2 and word == "error":
                return self.end_with({"error": {"message": "the engine ran out of <pages>", "code": 500}})
            if index == 2 and word == "cut":
                return self.chunk(b"")
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        usage = {"prompt_tokens": 24, "completion_tokens": len(pieces), "prompt_tokens_details": {"cached_tokens": 16}}
        return self.end_with({"choices": [], "usage": usage})

    def end_with(self, payload: dict) -> None:
        self.event(payload)
        self.event("[DONE]")
        self.chunk(b"")


@contextmanager
def serve(port: int = 0, **fields):
    """serve(api_key=..., template=...) yields a running Stub."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.stub = Stub(url=f"http://127.0.0.1:{server.server_port}/", **fields)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.stub
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    with serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8765, token_seconds=0.03) as running:
        print(running.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass
