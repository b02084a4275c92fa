#!/usr/bin/env python3
"""A stub of the Hugging Face hub on loopback that can simulate network and server faults.

    tests/hub/stub_hub.py FOLDER [--port 0] [--seed 1] [--faults cut,length,429,500,...] [--rate 0.3]

FOLDER has ORG/NAME/files. Prints one JSON line with its address, then serves until it is stopped. Files over 1 KiB are
"LFS" files: the stub redirects them to a second server, as the hub does to its CDN, which rejects requests with an
Authorization header. The stub records every byte range that it sends, so that tests can count them."""

import argparse
import hashlib
import json
import random
import re
import socket
import sys
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LFS_BYTES = 1024
PIECE = 4096
FAULTS = ("cut", "short_length", "long_length", "wrong_range", "429", "500", "503", "ignore_range", "slow", "wrong_etag",
          "expired", "reset")


@dataclass
class Sent:
    """One response with bytes of a file."""

    path: str
    begin: int
    count: int
    fault: str


@dataclass
class Settings:
    seed: int = 1
    faults: tuple[str, ...] = ()
    rate: float = 0.3  # fraction of responses with a fault
    token: str = ""  # if set, required for every file
    no_ranges: bool = False
    wrong_content: set[str] = field(default_factory=set)  # paths whose content is wrong once
    always_wrong: set[str] = field(default_factory=set)
    bytes_per_second: float = 0  # 0: unlimited
    gguf_architecture: str = ""  # in the listing; empty: not there


class StubHub:
    def __init__(self, folder: Path, settings: Settings | None = None):
        self.folder = folder
        self.settings = settings or Settings()
        self.random = random.Random(self.settings.seed)
        self.lock = threading.Lock()
        self.sent: list[Sent] = []
        self.requests: list[str] = []
        self.leaked_tokens = 0
        self.hub = _Server(self, _Hub)
        self.cdn = _Server(self, _Cdn)
        self.url = f"http://127.0.0.1:{self.hub.server_port}"
        self.cdn_url = f"http://127.0.0.1:{self.cdn.server_port}"

    def __enter__(self):
        for server in (self.hub, self.cdn):
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        for server in (self.hub, self.cdn):
            server.shutdown()
            server.server_close()

    def fault(self) -> str:
        with self.lock:
            settings = self.settings
            if not settings.faults or self.random.random() >= settings.rate:
                return ""
            return self.random.choice(settings.faults)

    def commit(self, repo: str) -> str:
        text = "".join(f"{name} {self.hash(repo, name)}\n" for name in self.names(repo))
        return hashlib.sha1(text.encode()).hexdigest()

    def names(self, repo: str) -> list[str]:
        root = self.folder / repo
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())

    def data(self, repo: str, name: str) -> bytes:
        return (self.folder / repo / name).read_bytes()

    def is_lfs(self, repo: str, name: str) -> bool:
        return (self.folder / repo / name).stat().st_size > LFS_BYTES

    def hash(self, repo: str, name: str) -> str:
        path = self.folder / repo / name
        key = (str(path), path.stat().st_mtime_ns)
        if key not in _HASHES:
            data = path.read_bytes()
            lfs = hashlib.sha256(data) if len(data) > LFS_BYTES else None
            _HASHES[key] = (lfs or hashlib.sha1(b"blob %d\0" % len(data) + data)).hexdigest()
        return _HASHES[key]

    def bytes_sent(self, path: str) -> int:
        """Bytes in responses that honoured the requested range; others could not be used."""
        with self.lock:
            return sum(sent.count for sent in self.sent if sent.path == path and sent.fault != "ignore_range")


_HASHES: dict[tuple[str, int], str] = {}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, stub: StubHub, handler):
        self.stub = stub
        super().__init__(("127.0.0.1", 0), handler)
        # Keep the socket buffer small: its bytes count as sent but may never be received.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def stub(self) -> StubHub:
        return self.server.stub

    def log_message(self, *_):
        pass

    def answer(self, status: int, body: bytes = b"", **headers) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def failed_before_bytes(self, fault: str) -> bool:
        if fault == "429":
            self.answer(429, Retry_After=0)
        elif fault in ("500", "503"):
            self.answer(int(fault))
        elif fault == "reset":
            self.close_connection = True
        else:
            return False
        return True

    def send_file(self, repo: str, name: str, fault: str, headers: dict) -> None:
        stub, settings = self.stub, self.stub.settings
        data = stub.data(repo, name)
        path = f"{repo}/{name}"
        if path in settings.always_wrong or path in settings.wrong_content:
            settings.wrong_content.discard(path)
            data = bytes(len(data))
        begin, end = 0, len(data)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and not settings.no_ranges and fault != "ignore_range":
            begin, end = int(asked[1]), min(int(asked[2] or len(data) - 1) + 1, len(data))
            if begin >= len(data):
                return self.answer(416)
            shift = 1 if fault == "wrong_range" else 0
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin + shift}-{end - 1}/{len(data)}")
        else:
            self.send_response(200)
            fault = "ignore_range" if asked else fault
        body = data[begin:end]
        length = len(body) + {"short_length": -(len(body) // 2), "long_length": 100}.get(fault, 0)
        self.send_header("Content-Length", str(length))
        self.send_header("Accept-Ranges", "bytes")
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return None
        with stub.lock:
            cut = stub.random.randrange(len(body) + 1) if fault == "cut" else len(body)
            sent = Sent(path, begin, 0, fault)
            stub.sent.append(sent)
        if fault in ("cut", "long_length", "short_length", "ignore_range"):
            self.close_connection = True
        if fault == "short_length":
            cut = length
        self._send(body[:cut], sent, slow=fault == "slow")

    def _send(self, body: bytes, sent: Sent, slow: bool) -> None:
        rate = self.stub.settings.bytes_per_second
        for at in range(0, len(body), PIECE):
            piece = body[at:at + PIECE]
            self.wfile.write(piece)
            sent.count += len(piece)
            if slow:
                time.sleep(0.002)
            elif rate:
                time.sleep(len(piece) / rate)


class _Hub(_Handler):
    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        stub = self.stub
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path)
        with stub.lock:
            stub.requests.append(f"{self.command} {self.path}")
        fault = stub.fault()
        if self.failed_before_bytes(fault):
            return None
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)", path):
            return self.info(*found.groups())
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)/?", path):
            return self.tree(*found.groups())
        if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            return self.resolve(*found.groups(), fault)
        return self.answer(404)

    def known(self, repo: str, revision: str) -> bool:
        if not (self.stub.folder / repo).is_dir():
            self.answer(401, X_Error_Code="RepoNotFound", X_Error_Message="Repository not found")
            return False
        if revision not in ("main", "refs/pr/1", self.stub.commit(repo)):
            self.answer(404, X_Error_Code="RevisionNotFound", X_Error_Message="Invalid rev id")
            return False
        return True

    def info(self, repo: str, revision: str):
        if not self.known(repo, revision):
            return
        stub = self.stub
        siblings = []
        for name in stub.names(repo):
            size, digest = len(stub.data(repo, name)), stub.hash(repo, name)
            entry = {"rfilename": name, "size": size, "blobId": digest[:40]}
            if stub.is_lfs(repo, name):
                entry["lfs"] = {"sha256": digest, "size": size, "pointerSize": 130}
            siblings.append(entry)
        body = {"_id": "1", "id": repo, "modelId": repo, "sha": stub.commit(repo), "siblings": siblings}
        if stub.settings.gguf_architecture:
            body["gguf"] = {"total": 1000, "architecture": stub.settings.gguf_architecture, "context_length": 64}
        self.answer(200, json.dumps(body).encode(), Content_Type="application/json")

    def tree(self, repo: str, revision: str):
        if not self.known(repo, revision):
            return
        stub = self.stub
        entries = []
        for name in stub.names(repo):
            size, digest = len(stub.data(repo, name)), stub.hash(repo, name)
            entry = {"type": "file", "path": name, "size": size, "oid": digest[:40]}
            if stub.is_lfs(repo, name):
                entry["lfs"] = {"oid": digest, "size": size, "pointerSize": 130}
            entries.append(entry)
        self.answer(200, json.dumps(entries).encode(), Content_Type="application/json")

    def resolve(self, repo: str, revision: str, name: str, fault: str):
        stub = self.stub
        if not self.known(repo, revision):
            return None
        if stub.settings.token and self.headers.get("Authorization") != f"Bearer {stub.settings.token}":
            return self.answer(401, X_Error_Code="GatedRepo", X_Error_Message="Access to this model is restricted")
        if not (stub.folder / repo / name).is_file():
            return self.answer(404, X_Error_Code="EntryNotFound")
        digest = stub.hash(repo, name)
        tag = "0" * len(digest) if fault == "wrong_etag" else digest
        commit = stub.commit(repo)
        if not stub.is_lfs(repo, name):
            return self.send_file(repo, name, fault, {"ETag": f'"{tag}"', "X-Repo-Commit": commit})
        where = f"{stub.cdn_url}/{repo}/{urllib.parse.quote(name)}?signature=abc"
        return self.answer(302, Location=where, ETag='"not-this-one"', X_Linked_ETag=f'"{tag}"',
                           X_Linked_Size=len(stub.data(repo, name)), X_Repo_Commit=commit)


class _Cdn(_Handler):
    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        stub = self.stub
        if self.headers.get("Authorization"):
            stub.leaked_tokens += 1
            return self.answer(400)
        fault = stub.fault()
        if self.failed_before_bytes(fault):
            return None
        if fault == "expired":
            return self.answer(403)
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).lstrip("/")
        org, repo, name = path.split("/", 2)
        return self.send_file(f"{org}/{repo}", name, fault, {"ETag": '"of-the-cdn"'})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", default="", help="a list of: " + ",".join(FAULTS))
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--bytes-per-second", type=float, default=0)
    flags = parser.parse_args()
    faults = tuple(filter(None, flags.faults.split(",")))
    settings = Settings(seed=flags.seed, faults=faults, rate=flags.rate, bytes_per_second=flags.bytes_per_second)
    with StubHub(flags.folder, settings) as stub:
        print(json.dumps({"HF_ENDPOINT": stub.url}), flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
