"""A server for the tests of attack_kit.py: streams a token every 20 ms, and does what a request says: {"sleep": seconds},
{"hog_mb": memory that it keeps}, {"stop": seconds without tokens}. Prints its port."""

import http.server
import json
import time

kept = []
stopped_until = 0.0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer()

    def do_POST(self):
        global stopped_until
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body.get("stream"):
            self.stream(body["max_tokens"])
            return
        if body.get("hog_mb"):
            kept.append(b"x" * (body["hog_mb"] * 1_000_000))
        stopped_until = time.monotonic() + body.get("stop", 0)
        time.sleep(body.get("sleep", 0))
        self.answer()

    def answer(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def stream(self, tokens: int):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for _ in range(tokens):
                time.sleep(0.02)
                while time.monotonic() < stopped_until:
                    time.sleep(0.01)
                self.wfile.write(b'7\r\ndata: {\r\n2\r\n}\n\r\n1\r\n\n\r\n')
        except OSError:
            self.close_connection = True  # the client has left


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
