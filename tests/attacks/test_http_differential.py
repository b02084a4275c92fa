"""The server divides a byte stream into the same requests as h11 and llhttp do, or refuses it. A proxy in front of it that saw
other requests could be made to pass on one that it did not check."""

import os
from pathlib import Path

import pytest
from http_framings import Framing, LineReader, Request, difference, h11_framing, node_reader
from http_streams import SMUGGLED, streams
from server_kit import REPO
from slow_tests import repeats

COUNT = repeats(in_ci=2_000, by_hand=100_000)
SEED = 1


@pytest.fixture(scope="module")
def ours() -> LineReader:
    path = Path(os.environ.get("OCTAVO_BUILD", REPO / "build" / "release")) / "tests" / "http_framing"
    return LineReader([path]) if path.exists() else pytest.fail(f"{path} is not built (OCTAVO_BUILD chooses the build folder)")


def compare(ours: LineReader, sent: list[list[bytes]]) -> list[Framing]:
    """Our framings, each compared with the references'."""
    found = list(ours.framings(sent))
    references = [{"h11": h11_framing(pieces)} for pieces in sent]
    if node := node_reader():
        for reference, framing in zip(references, node.framings(sent)):
            assert framing.end != "stuck"
            reference["node"] = framing
    wrong = []
    for pieces, framing, reference in zip(sent, found, references):
        # Either reference alone refuses more than it must, so a request that it refuses says little without the other.
        what = difference(framing, reference) if len(reference) == 2 else difference_from_one(framing, reference["h11"])
        if what:
            wrong.append(f"{pieces!r}: {what}")
    assert not wrong, f"{len(wrong)} of {len(sent)} streams, the first: " + "\n".join(wrong[:3])
    return found


def difference_from_one(ours: Framing, theirs: Framing) -> str | None:
    for our, their in zip(ours.requests, theirs.requests):
        if our != their:
            return f"{our}, with the reference {their}"
    return None


def test_random_streams_are_framed_alike(ours):
    found = compare(ours, list(streams(COUNT, SEED)))
    # The streams reach both sides: requests after the first one, and refusals.
    assert sum(len(framing.requests) >= 2 for framing in found) > COUNT / 20
    assert COUNT / 4 < sum(framing.end == "refused" for framing in found) < COUNT * 0.9


def test_the_reader_prints_what_it_reads(ours):
    """The comparison sees a smuggled request, a body and the end."""
    post = b"POST /a%20b?c HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nxyz"
    close = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    found = compare(ours, [[post + SMUGGLED], [post[:20], post[20:] + b"\0"], [close + SMUGGLED], [post[:-1]]])
    first = Request(b"POST", b"/a b", b"c", b"xyz")
    assert found == [Framing([first, Request(b"GET", b"/smuggled", b"", b"")], "end"), Framing([first], "refused"),
                     Framing([Request(b"GET", b"/", b"", b"")], "closed"), Framing([], "end")]


@pytest.mark.parametrize("header", ["Transfer-Encoding: chunked, chunked", "Transfer-Encoding: gzip, chunked",
                                    "Content-Length: 43\r\nContent-Length: 043", "Content-Length: 43, 43",
                                    "Transfer-Encoding: chunked\r\nContent-Length: 43"])
def test_two_ways_to_find_the_end_of_a_body_are_refused(ours, header):
    stream = f"POST / HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n".encode() + SMUGGLED
    assert compare(ours, [[stream]]) == [Framing([], "refused")]


def test_transfer_encoding_needs_http_1_1(ours):
    stream = b"POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n" + SMUGGLED
    assert compare(ours, [[stream]]) == [Framing([], "refused")]


def test_any_connection_header_may_close(ours):
    stream = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n" + SMUGGLED
    assert compare(ours, [[stream]]) == [Framing([Request(b"GET", b"/", b"", b"")], "closed")]


def test_a_different_framing_is_found():
    """The comparison itself."""
    one = Framing([Request(b"POST", b"/", b"", b"")], "end")
    two = Framing([*one.requests, Request(b"GET", b"/smuggled", b"", b"")], "end")
    refused = Framing([], "refused")
    assert difference(two, {"h11": one, "node": refused})
    assert difference(one, {"h11": two, "node": two})
    assert difference(Framing([Request(b"POST", b"/", b"", b"x")], "end"), {"h11": one, "node": refused})
    assert difference(refused, {"h11": two, "node": two}) is None
    assert difference(one, {"h11": one, "node": refused}) is None
