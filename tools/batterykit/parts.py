"""Reads parts.toml."""

import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

FILE = Path(__file__).with_name("parts.toml")


@dataclass(frozen=True)
class Part:
    """The comment of parts.toml describes the fields."""

    name: str
    claim: str
    command: str
    count: int = 1
    unit: str = "runs"
    piece: int = 0  # 0: all at once
    variants: tuple[str, ...] = ("",)
    build: str = ""
    figure: str = ""

    def size(self, done: int) -> int:
        """How much the next run of the command does when `done` of `count` are done."""
        return min(self.piece or self.count, self.count - done)

    def seed(self, done: int) -> int:
        return done // (self.piece or self.count) + 1

    def variant(self, done: int) -> str:
        return self.variants[(self.seed(done) - 1) % len(self.variants)]


@dataclass(frozen=True)
class Battery:
    parts: dict[str, Part]
    models: dict[str, str]  # name: the command that makes it
    paths: dict[str, str]

    def models_of(self, part: Part) -> list[str]:
        """The names of the made models that any of its commands contains."""
        text = " ".join([part.command, *part.variants])
        return [name for name in self.models if f"{{{name}}}" in text]


def read(file: Path = FILE) -> Battery:
    """Throws ValueError if a part has an unknown field, or pieces that do not divide its count and variants."""
    found = tomllib.loads(file.read_text())
    known = {field.name for field in fields(Part)}
    parts = {}
    for name, values in found["parts"].items():
        if unknown := values.keys() - known:
            raise ValueError(f"{file.name}: part {name} has the unknown field {', '.join(sorted(unknown))}")
        part = Part(name, **(values | {"variants": tuple(values.get("variants", ("",)))}))
        if part.count % (part.piece or part.count) or part.count // (part.piece or part.count) % len(part.variants):
            raise ValueError(f"{file.name}: the pieces of {name} do not divide its count among its variants")
        parts[name] = part
    return Battery(parts, found["models"], found["paths"])


def filled(text: str, values: dict[str, str]) -> str:
    """Replaces {name}. Values may contain further names; braces around other text stay. Names with digits only are not names."""
    for _ in range(3):
        text = re.sub(r"\{([a-z]\w*)\}", lambda found: values.get(found[1], found[0]), text)
    return text
