#!/usr/bin/env python3
"""Writes src/kernels/metal/*.metal as a C++ table: each kernel's source (with its includes expanded) and its signature.

Launch::check compares the host's launches with this table, so the order of arguments is defined in one place.

usage: embed_metal.py OUTPUT.cpp KERNEL.metal...   (exits with status 1 and prints "file: message" if a signature cannot be
parsed)"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"
INCLUDE = re.compile(r'^#include "(kernels/metal/[^"]+)"\n', re.M)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
KERNEL = re.compile(r"(?:template\s*<(?P<template>[^{};]*?)>\s*)?\[\[\s*kernel[^\]]*\]\]\s*void\s+(?P<name>\w+)\s*\(")
CONSTANT = re.compile(r"constant\s+(bool|int|float)\s+(\w+)\s*\[\[\s*function_constant\((\d+)\)\s*\]\]\s*;")
ATTRIBUTE = re.compile(r"\[\[\s*(.*?)\s*\]\]", re.S)
PLACE = re.compile(r"\b(buffer|threadgroup)\((\d+)\)")
LONGEST_STRING = 12_000  # characters in a C++ literal that every compiler accepts


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str
    index: int
    type: str
    optional: bool


@dataclass(frozen=True)
class Kernel:
    name: str
    template_arguments: list[str]
    parameters: list[Parameter]


def with_includes(path: Path, seen: set[str]) -> str:
    """Returns the file's text with includes expanded, each header at most once."""

    def put_in(match: re.Match) -> str:
        name = match[1]
        if name in seen:
            return ""
        seen.add(name)
        return with_includes(SRC / name, seen)

    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^#pragma once\n", "", text, flags=re.M)
    return INCLUDE.sub(put_in, text)


def closing(text: str, start: int) -> int:
    """Returns the position of the bracket that closes the one opened before `start`."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError("unbalanced brackets")


def split(text: str) -> list[str]:
    """Splits at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += {"(": 1, "[": 1, "<": 1, ")": -1, "]": -1, ">": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def parameter(text: str) -> Parameter | None:
    """Returns None for parameters that the host does not bind, such as the thread's position in the grid."""
    attributes = " ".join(ATTRIBUTE.findall(text))
    place = PLACE.search(attributes)
    if not place:
        return None
    declaration = ATTRIBUTE.sub("", text).split()
    declaration = re.findall(r"[\w:]+|[*&]", " ".join(declaration))
    name, words = declaration[-1], declaration[:-1]
    if place[1] == "threadgroup":
        kind = "kThreadgroup"
    elif "constant" in words:
        kind = "kBytes"
    else:
        kind = "kInput" if "const" in words else "kOutput"
    types = [word for word in words if word not in ("const", "device", "constant", "threadgroup", "*", "&")]
    if len(types) != 1:
        raise ValueError(f"parameter {name}: its type must be one word")
    return Parameter(name, kind, int(place[2]), types[0], "function_constant" in attributes)


def kernels_of(text: str) -> list[Kernel]:
    text = COMMENT.sub("", text)
    found = []
    for match in KERNEL.finditer(text):
        signature = text[match.end() : closing(text, match.end())]
        arguments = [part.split()[-1] for part in split(match["template"] or "")]
        parameters = [p for p in map(parameter, split(signature)) if p]
        found.append(Kernel(match["name"], arguments, parameters))
    return found


def literal(text: str) -> str:
    pieces = [text[at : at + LONGEST_STRING] for at in range(0, len(text), LONGEST_STRING)]
    return "\n".join(f'R"msl({piece})msl"' for piece in pieces)


def table_of(path: Path) -> tuple[str, list[str]]:
    """Returns the C++ for one file: its arrays and its table entries."""
    text = with_includes(path, set())
    if not text.isascii():
        raise ValueError("not ASCII; MLX passes only ASCII to Metal's compiler")
    unit = path.stem
    constants = CONSTANT.findall(COMMENT.sub("", text))
    lines = [f"constexpr std::string_view {unit}_text =\n{literal(text)};"]
    rows = ", ".join(f'FunctionConstant{{"{name}", {index}, "{kind}"}}' for kind, name, index in constants)
    lines.append(f"constexpr std::array<FunctionConstant, {len(constants)}> {unit}_constants = {{{rows}}};")
    entries = []
    kernels = kernels_of(text)
    if not kernels:
        raise ValueError("no kernel found")
    for kernel in kernels:
        names = ", ".join(f'"{name}"' for name in kernel.template_arguments)
        lines.append(f"constexpr std::array<std::string_view, {len(kernel.template_arguments)}> {kernel.name}_types = {{{names}}};")
        rows = ",\n    ".join(
            f'Parameter{{"{p.name}", ParameterKind::{p.kind}, {p.index}, "{p.type}", {str(p.optional).lower()}}}' for p in kernel.parameters
        )
        lines.append(f"constexpr std::array<Parameter, {len(kernel.parameters)}> {kernel.name}_parameters = {{\n    {rows}}};")
        entries.append(f'KernelSource{{"{kernel.name}", {kernel.name}_types, {kernel.name}_parameters, {unit}_constants, {unit}_text}}')
    return "\n".join(lines), entries


def main() -> int:
    output, *paths = map(Path, sys.argv[1:])
    tables, entries = [], []
    for path in sorted(paths):
        try:
            table, rows = table_of(path)
        except ValueError as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 1
        tables.append(table)
        entries += rows
    joined = "\n\n".join(tables)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(f"""#include <array>

#include "kernels/metal/kernel_source.h"

namespace octavo::metal {{
namespace {{

{joined}

constexpr std::array<KernelSource, {len(entries)}> kKernels = {{
    {", ".join(entries)}}};

}}  // namespace

std::span<const KernelSource> kernel_sources() {{ return kKernels; }}

}}  // namespace octavo::metal
""", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
