"""Tokenizes preprocessed MSL and navigates the tokens."""

import re

TOKEN = re.compile(
    r"""(?P<marker>^\#[^\n]*\n)"""  # of the preprocessor: # line "file"
    r"""|(?P<space>\s+)"""
    r"""|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)"""
    r"""|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<sign>::|->|<<=|>>=|&&|\|\||[-+*/%&|^<>=!]=|\+\+|--|.)""",
    re.M | re.S,
)
MARKER = re.compile(r'#\s*(?:line\s+)?(\d+)\s+"([^"]*)"')
OPENING = {"(", "[", "{"}
CLOSING = {")", "]", "}"}


class Token:
    __slots__ = ("kind", "text", "file", "line")

    def __init__(self, kind: str, text: str, file: str, line: int):
        self.kind, self.text, self.file, self.line = kind, text, file, line


def tokenize(source: str) -> list[Token]:
    tokens, file, line = [], "?", 1
    for match in TOKEN.finditer(source):
        kind, text = match.lastgroup, match.group()
        if kind == "marker":
            place = MARKER.match(text)
            if place:
                line, file = int(place[1]) - 1, place[2]
        tokens.append(Token(kind, text, file, line))
        line += text.count("\n")
    return tokens


class TokenList:
    """Tokens by index. next and previous skip spaces and markers; text of an index outside is empty."""

    def __init__(self, tokens: list[Token]):
        self.tokens = tokens

    def text(self, at: int) -> str:
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""

    def is_word(self, at: int, *words: str) -> bool:
        if not 0 <= at < len(self.tokens) or self.tokens[at].kind != "word":
            return False
        return not words or self.tokens[at].text in words

    def is_sign(self, at: int, sign: str) -> bool:
        return self.text(at) == sign and self.tokens[at].kind == "sign"

    def next(self, at: int) -> int:
        at += 1
        while at < len(self.tokens) and self.tokens[at].kind in ("space", "marker"):
            at += 1
        return at

    def previous(self, at: int) -> int:
        at -= 1
        while at >= 0 and self.tokens[at].kind in ("space", "marker"):
            at -= 1
        return at

    def joined(self, first: int, end: int) -> str:
        return "".join(" " if token.kind == "marker" else token.text for token in self.tokens[first:end])

    def blank(self, first: int, end: int) -> None:
        """Removes tokens; line numbers do not change."""
        for token in self.tokens[first:end]:
            if token.kind != "marker":
                token.text, token.kind = "\n" * token.text.count("\n"), "space"

    def closing(self, at: int) -> int:
        """Index of the bracket that closes the one at `at`."""
        depth = 0
        while at < len(self.tokens):
            if self.tokens[at].kind == "sign":
                if self.tokens[at].text in OPENING:
                    depth += 1
                elif self.tokens[at].text in CLOSING:
                    depth -= 1
                    if depth == 0:
                        return at
            at += 1
        raise ValueError("unbalanced brackets")

    def closing_angle(self, at: int) -> int:
        """Index of the > that closes the < at `at`, or -1 if it was a comparison."""
        depth = 0
        while at < len(self.tokens):
            text = self.text(at)
            if text in ("(", "["):
                at = self.closing(at)
            elif text == "<":
                depth += 1
            elif text == ">":
                depth -= 1
                if depth == 0:
                    return at
            elif text in (";", "{"):
                return -1
            at += 1
        return -1

    def is_attribute(self, at: int) -> bool:
        return self.text(at) == "[" and self.text(self.next(at)) == "[" and self.text(self.previous(at)) != "operator"

    def take_attributes(self, first: int, end: int) -> dict[str, str]:
        """Attributes by name, with their arguments; blanks them in the text."""
        found, at = {}, first
        while at < end:
            if self.is_attribute(at):
                close = self.closing(at)
                body = self.joined(self.next(at) + 1, self.previous(close))
                for match in re.finditer(r"(\w+)\s*(?:\(([^()]*(?:\([^()]*\))?[^()]*)\))?", body):
                    found[match[1]] = (match[2] or "").strip()
                self.blank(at, close + 1)
                at = close
            at += 1
        return found
