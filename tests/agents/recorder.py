"""A proxy that records what a client sends to a server and what the server says about it. The client sees the server's bytes."""

import http.client
import json
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection"}


@dataclass
class Exchange:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    status: int = 0  # 0: the client or the server went away
    answer_headers: dict[str, str] = field(default_factory=dict)
    answer: bytes = b""

    @property
    def json(self):
        try:
            return json.loads(self.body) if self.body else None
        except ValueError:
            return None

    @property
    def route(self) -> str:
        return self.path.partition("?")[0]


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Recorder:
    """Listens on a free port of the loopback address and forwards to `upstream_port`. Use as a context manager."""

    def __init__(self, upstream_port: int):
        self.exchanges: list[Exchange] = []
        self._server = _QuietServer(("127.0.0.1", 0), _handler(self, upstream_port))
        self.port = self._server.server_address[1]

    def __enter__(self) -> "Recorder":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def _handler(recorder: Recorder, upstream_port: int):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def forward(self) -> None:
            exchange = Exchange(self.command, self.path, dict(self.headers.items()), self._read_body())
            recorder.exchanges.append(exchange)
            upstream = http.client.HTTPConnection("127.0.0.1", upstream_port, timeout=600)
            headers = {
                name: value for name, value in exchange.headers.items() if name.lower() not in HOP_BY_HOP | {"content-length"}
            }
            try:
                upstream.request(self.command, self.path, exchange.body or None, headers)
                self._relay(upstream.getresponse(), exchange)
            except OSError:
                self.close_connection = True
            finally:
                upstream.close()

        do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = forward

        def _read_body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def _relay(self, answer: http.client.HTTPResponse, exchange: Exchange) -> None:
            exchange.answer_headers = {name.lower(): value for name, value in answer.getheaders()}
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            chunked = "content-length" not in exchange.answer_headers and self.command != "HEAD" and answer.status != 204
            if chunked:
                self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while data := answer.read1(65536):
                exchange.answer += data
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
                self.wfile.flush()
            if chunked:
                self.wfile.write(b"0\r\n\r\n")
            exchange.status = answer.status

    return Handler
