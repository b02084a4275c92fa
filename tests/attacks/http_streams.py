"""Random HTTP/1.1 byte streams, valid and mutated, in which parsers may see different requests. The same seed gives the same
streams."""

import random
import re
from collections.abc import Iterator

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"

METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH")
TARGETS = ("/", "/v1/completions", "/a?b=c", "/%2e%2e/x", "/a%2Fb?c=%20", "http://localhost/path?x", "/a;b=1,2")
ODD_TARGETS = ("", "*", "http://", "http://host", "http://host?x", "HTTPS://HOST/x", "//x/y", "/a b", "/a\tb", "/a#b",
               "localhost:80", "/a\0b", "/%zz", "/a\x0b", "/\x7f", "?x", "/a  HTTP/1.1", "/a\"b<c>")
ODD_VERSIONS = ("HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "http/1.1", "HTTP/1.10", "HTTP/01.1", "HTTP/1.1 ", "HTTP/1.1\t",
                "HTTP /1.1", "HTTP/1,1", "HTTP/11", "", "ICE/1.0", "RTSP/1.0")
ODD_METHODS = ("get", "POST ", " POST", "PO ST", "POST\t", "P\0ST", "P(ST", "SOURCE", "\nGET", "\r\nGET", "\r\n\r\nPOST")
ENCODINGS = ("chunked", "Chunked", "CHUNKED", "chunked, chunked", "gzip, chunked", "chunked, gzip", "identity", "chunked;q=1",
             "identity, chunked", "xchunked", "chunkedx", "chunked x", '"chunked"', "\tchunked", "chunked ", "chunked\t",
             "chunked,", ",chunked", ", chunked", "", " ", "\x0bchunked", "\x0cchunked", "chunked\0", "chunk ed", "chunked\r\n ",
             "\r\n chunked", "chunked\r\n\t, gzip", "chunked\x80", "c\u0068unked;x", "trailers", "deflate")
LENGTHS = ("{n}", "0{n}", "+{n}", "-{n}", "0x{n}", "{n} ", "  {n}", "{n}\t", "\t{n}", "{n},{n}", "{n}, {n}", "{n},6", "{n};1", "{n}.0",
           "", " ", "99999999999999999999", "18446744073709551621", "4294967301", "{n} {n}", "{n}e0", "\x0b{n}", "{n}\0", "{n}\x80",
           "-0", "\r\n {n}", "{n}\r\n ", "{n}\r\n 1", "0", "1", "{n}_0", "\u0665")
ODD_NAMES = ("{name} ", " {name}", "{name}\t", "\t{name}", "{name}\0", "{name}\x0b", "{low}", "{up}", "X-{name}", "{name}\r\n ",
             "\x01{name}", "{name}\x80", "{name}:", "({name})", "{under}")
CHUNK_SIZES = ("{n:x}", "{n:X}", "0{n:x}", "0000000{n:x}", "000000000000000{n:x}", "0x{n:x}", "+{n:x}", "-{n:x}", " {n:x}",
               "{n:x} ", "{n:x}\t", "{n:x};e", "{n:x};e=v", '{n:x};e="v"', '{n:x};e="a\r\nb"', "{n:x}; e", "{n:x};\ne",
               "{n:x};a\rb", "{n:x};", "{n:x};\0", "{n:x}\0", "fffffffffffffff{n:x}", "10000000000000000{n:x}", "{n:x}_", "", "g",
               "{n:x} {n:x}", "{n:x},", "{n:x}\x0b", "{n:x}e=v", "{n:x};;", "{n:x}\r", "{n}")
LAST_CHUNKS = ("0", "00", "0000000000000000", "0;x", "0 ", " 0", "-0", "0x0", "", "0\t")
CHUNK_ENDS = ("\r\n", "\n", "\r", "", "\r\n\r\n", "xx", "\n\r", " \r\n")
TRAILERS = ("", "", "", "X: y\r\n", "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "Host: other\r\n", "X y\r\n", " fold\r\n",
            "X: y\n", "X : y\r\n", "\0: y\r\n", ": y\r\n")
LINE_ENDS = ("\n", "\r", "\r\r\n", "\n\r", "\r\n ", "\r\n\t", "", "\r\n\r\n", " \r\n", "\0\r\n", "\x0b\r\n")
CONNECTIONS = ("Upgrade\r\nUpgrade: h2c", "close", "keep-alive", "Close", "close, keep-alive", "keep-alive, close", "x", "", "keep-alive\r\nConnection: close")
OTHER_HEADERS = (("Expect", "100-continue"), ("X", ""), ("X", "a\x80b"), ("X", "\0"), ("X", "a\rb"), ("X", "a\nb"), ("X", "a\r\n b"),
                 ("", "x"), ("X Y", "z"), ("X\t", "z"), ("Proxy-Connection", "close"), ("Trailer", "X"), ("TE", "chunked"),
                 ("Content-Encoding", "gzip"), ("X", "y" * 3000), ("@", "x"), ("X{}", "y"), ("X", "\x7f"), ("X", "\x01"))
# No byte above 127: in a target the server passes it on and the references refuse it, which does not change the framing.
BYTES = b"\r\n\t \0:;,/0159aF\x0b\"x"


class _Draft:
    """One request as text parts, each of which a mutation may spoil. Text is latin-1."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.method = rng.choice(METHODS)
        self.target = rng.choice(TARGETS)
        self.version = "HTTP/1.0" if rng.random() < 0.1 else "HTTP/1.1"
        self.fields: list[tuple[str, str]] = [("Host", "localhost")]
        self.line_ends: dict[int, str] = {}  # of lines that do not end as they should
        self.body = self._body()
        self.chunks: list[list[str]] | None = None  # size, data, end
        self.last, self.trailer = "0", ""
        framing = rng.choice(("none", "length", "chunked", "chunked")) if self.version == "HTTP/1.1" else rng.choice(("none", "length"))
        if framing == "none":
            self.body = ""
        elif framing == "length":
            self.fields.append(("Content-Length", str(len(self.body))))
        else:
            self._cut_into_chunks()
            self.fields.append(("Transfer-Encoding", "chunked"))
        if rng.random() < 0.15:
            self.fields.append(("Connection", rng.choice(("keep-alive", "close"))))
        rng.shuffle(self.fields)

    def _body(self) -> str:
        rng = self.rng
        if rng.random() < 0.4:  # becomes visible as a request if the body is framed otherwise
            return SMUGGLED.decode()
        return "".join(rng.choice("abc0\r\n5") for _ in range(rng.choice((0, 1, 5, 5, 16, 40))))

    def _cut_into_chunks(self) -> None:
        self.chunks = []
        rest = self.body
        while rest:
            size = self.rng.randint(1, len(rest))
            self.chunks.append([f"{size:x}", rest[:size], "\r\n"])
            rest = rest[size:]

    # Mutations.

    def odd_line(self) -> None:
        part = self.rng.choice(("method", "target", "version", "target"))
        setattr(self, part, self.rng.choice({"method": ODD_METHODS, "target": ODD_TARGETS, "version": ODD_VERSIONS}[part]))

    def odd_encoding(self) -> None:
        self._set("Transfer-Encoding", self.rng.choice(ENCODINGS))

    def odd_length(self) -> None:
        self._set("Content-Length", self.rng.choice(LENGTHS).replace("{n}", str(len(self.body))))

    def _set(self, name: str, value: str) -> None:
        """Replaces, precedes or follows the field of that name."""
        at = next((i for i, field in enumerate(self.fields) if field[0] == name), None)
        if at is None or self.rng.random() < 0.5:
            self.fields.insert(self.rng.randint(0, len(self.fields)), (name, value))
        else:
            self.fields[at] = (name, value)

    def doubled(self) -> None:
        if not self.fields:
            return
        self.fields.insert(self.rng.randint(0, len(self.fields)), self.rng.choice(self.fields))

    def dropped(self) -> None:
        if self.fields:
            self.fields.pop(self.rng.randrange(len(self.fields)))

    def odd_name(self) -> None:
        if not self.fields:
            return
        at = self.rng.randrange(len(self.fields))
        name, value = self.fields[at]
        odd = self.rng.choice(ODD_NAMES)
        for word, text in (("{name}", name), ("{low}", name.lower()), ("{up}", name.upper()), ("{under}", name.replace("-", "_"))):
            odd = odd.replace(word, text)
        self.fields[at] = (odd, value)

    def other_field(self) -> None:
        field = ("Connection", self.rng.choice(CONNECTIONS)) if self.rng.random() < 0.3 else self.rng.choice(OTHER_HEADERS)
        self.fields.insert(self.rng.randint(0, len(self.fields)), field)

    def odd_chunk(self) -> None:
        if not self.chunks:
            return
        chunk = self.rng.choice(self.chunks)
        if self.rng.random() < 0.7:
            chunk[0] = self.rng.choice(CHUNK_SIZES).format(n=len(chunk[1]))
        else:
            chunk[2] = self.rng.choice(CHUNK_ENDS)

    def odd_last_chunk(self) -> None:
        self.last, self.trailer = self.rng.choice(LAST_CHUNKS), self.rng.choice(TRAILERS)

    def odd_line_end(self) -> None:
        self.line_ends[self.rng.randint(0, len(self.fields) + 1)] = self.rng.choice(LINE_ENDS)

    def old_version(self) -> None:
        self.version = "HTTP/1.0"

    def data(self) -> bytes:
        lines = [f"{self.method} {self.target} {self.version}", *(f"{name}: {value}" for name, value in self.fields), ""]
        head = "".join(line + self.line_ends.get(at, "\r\n") for at, line in enumerate(lines))
        body = self.body
        if self.chunks is not None:
            body = "".join(f"{size}\r\n{data}{end}" for size, data, end in self.chunks) + f"{self.last}\r\n{self.trailer}\r\n"
        return (head + body).encode("latin-1", errors="replace")


_MUTATIONS = (_Draft.odd_line, _Draft.odd_encoding, _Draft.odd_encoding, _Draft.odd_length, _Draft.odd_length, _Draft.doubled,
              _Draft.dropped, _Draft.odd_name, _Draft.other_field, _Draft.odd_chunk, _Draft.odd_chunk, _Draft.odd_last_chunk,
              _Draft.odd_line_end, _Draft.old_version)


# Whitespace between a chunk's size and its extension is allowed by RFC 9112 (7.1.1). The server accepts it; h11 and llhttp do
# not.
_SPACE_BEFORE_EXTENSION = re.compile(rb"[0-9a-fA-F][ \t]+;")


def _spoiled(rng: random.Random, data: bytes) -> bytes:
    """Changes one byte, removes some, repeats some, or cuts the end off."""
    if not data:
        return data
    at = rng.randrange(len(data))
    way = rng.randrange(5)
    if way == 0:
        return data[:at] + bytes([rng.choice(BYTES)]) + data[at + 1:]
    if way == 1:
        return data[:at] + bytes([rng.choice(BYTES)]) + data[at:]
    if way == 2:
        return data[:at] + data[at + rng.randint(1, 4):]
    if way == 3:
        return data[:at] + data[at:at + rng.randint(1, 8)] + data[at:]
    return data[:at]


def _pieces(rng: random.Random, data: bytes) -> list[bytes]:
    """The stream as it arrives: whole, or in a few parts."""
    if rng.random() < 0.7 or len(data) < 2:
        return [data]
    cuts = sorted({rng.randrange(1, len(data)) for _ in range(rng.randint(1, 4))})
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]


def streams(count: int, seed: int) -> Iterator[list[bytes]]:
    """This many streams, each a list of pieces without empty ones."""
    rng = random.Random(seed)
    for _ in range(count):
        data = b""
        for _ in range(rng.choice((1, 1, 2, 3))):
            draft = _Draft(rng)
            for _ in range(rng.choice((0, 1, 1, 2, 3))):
                rng.choice(_MUTATIONS)(draft)
            data += draft.data()
        if rng.random() < 0.25:
            data = _spoiled(rng, data)
        if rng.random() < 0.5:
            data += SMUGGLED
        yield _pieces(rng, _SPACE_BEFORE_EXTENSION.sub(b"0;", data) or b"\r\n")
