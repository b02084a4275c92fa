"""How three HTTP parsers divide a byte stream into requests: the server's reader, h11, and llhttp through Node."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

import h11


class Request(NamedTuple):
    method: bytes
    path: bytes  # percent-decoded
    query: bytes
    body: bytes


@dataclass
class Framing:
    requests: list[Request]
    # "refused": answered with an error; "closed": a request asked for it; "end": the stream ended; "no verdict": the rest of
    # the stream was not looked at
    end: str


def request_of(method: bytes, target: bytes, body: bytes) -> Request:
    """The request as the server reads it: an absolute target without its authority, the path decoded."""
    for scheme in (b"http://", b"https://"):
        if target[:len(scheme)].lower() == scheme:
            starts = [at for at in (target.find(b"/", len(scheme)), target.find(b"?", len(scheme))) if at >= 0]
            target = target[min(starts):] if starts else b"/"
    path, _, query = target.partition(b"?")
    return Request(method, unquote_to_bytes(path), query, body)


def h11_framing(pieces: list[bytes]) -> Framing:
    connection = h11.Connection(h11.SERVER)
    framing = Framing([], "end")
    request, body = None, b""
    try:
        for piece in [*pieces, b""]:  # an empty piece is the end
            connection.receive_data(piece)
            while True:
                event = connection.next_event()
                if event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.ConnectionClosed):
                    break
                if isinstance(event, h11.Request):
                    request, body = event, b""
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    framing.requests.append(request_of(request.method, request.target, body))
                    connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                    connection.send(h11.EndOfMessage())
                    if connection.our_state is h11.MUST_CLOSE or connection.their_state is h11.MUST_CLOSE:
                        # h11 closes after every HTTP/1.0 request, also after one with "Connection: keep-alive".
                        framing.end = "no verdict" if request.http_version == b"1.0" else "closed"
                        return framing
                    connection.start_next_cycle()
    except h11.RemoteProtocolError:
        framing.end = "refused"
    return framing


class LineReader:
    """A program that answers each stream on standard input with one line of JSON."""

    def __init__(self, command: list):
        self.command = [str(part) for part in command]

    def framings(self, streams: list[list[bytes]], timeout: float = 600) -> Iterator[Framing]:
        process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        watchdog = threading.Timer(timeout, process.kill)
        watchdog.start()
        threading.Thread(target=self._write, args=(process, streams), daemon=True).start()
        count = 0
        try:
            for line in process.stdout:
                count += 1
                yield self._parsed(json.loads(line))
        finally:
            watchdog.cancel()
            process.kill()
            process.wait()
        assert count == len(streams), f"{self.command[0]} ended at stream {count}: {b''.join(streams[count])!r}"

    @staticmethod
    def _write(process: subprocess.Popen, streams: list[list[bytes]]) -> None:
        try:
            for pieces in streams:
                process.stdin.write(" ".join(piece.hex() for piece in pieces) + "\n")
            process.stdin.close()
        except BrokenPipeError:
            pass  # the program ended; framings() reports it

    @staticmethod
    def _parsed(answer: dict) -> Framing:
        requests = []
        for entry in answer["requests"]:
            parts = {name: bytes.fromhex(value) for name, value in entry.items()}
            requests.append(request_of(parts["method"], parts["target"], parts["body"]) if "target" in parts else
                            Request(parts["method"], parts["path"], parts["query"], parts["body"]))
        return Framing(requests, answer["end"])


def node_reader() -> LineReader | None:
    """None if Node is not installed."""
    node = shutil.which("node")
    return LineReader([node, Path(__file__).with_name("node_framing.js")]) if node else None


# llhttp refuses methods that it does not know.
METHODS = {b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH"}


def difference(ours: Framing, references: dict[str, Framing]) -> str | None:
    """What is wrong with our framing: a request that a reference divides differently, one that every reference refuses, or
    one that every reference sees and we do not, although we refused nothing. None if nothing is wrong; refusing or closing is
    always right."""
    for name, theirs in references.items():
        for number, (our, their) in enumerate(zip(ours.requests, theirs.requests)):
            if our != their:
                return f"request {number} is {our}, with {name} {their}"
    counts = {name: len(theirs.requests) for name, theirs in references.items()}
    ends = ", ".join(f"{name}: {counts[name]}, {theirs.end}" for name, theirs in references.items())
    count = len(ours.requests)
    if ours.end == "end" and all(theirs > count for theirs in counts.values()):
        return f"{count} requests, but {ends}"
    if any(theirs.end == "no verdict" for theirs in references.values()):
        return None
    most = max(counts.values())
    if count > most and ours.requests[most].method in METHODS:
        return f"request {most} is {ours.requests[most]}, which no reference accepts ({ends})"
    return None
