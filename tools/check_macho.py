#!/usr/bin/env python3
"""Checks an executable built by tools/cross_macos.sh: that it is for arm64 macOS, and that MLX's library exports every MLX
symbol it uses. A private MLX symbol would link here but not on a Mac.

usage: check_macho.py EXECUTABLE LIBMLX.dylib   (exits with status 1 and prints the reasons if a check fails)"""

import re
import struct
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

MAGIC_64, CPU_ARM64 = 0xFEEDFACF, 0x0100000C
EXECUTE, DYLIB = 2, 6
LC_SYMTAB, LC_LOAD_DYLIB, LC_LOAD_WEAK_DYLIB, LC_BUILD_VERSION = 0x2, 0xC, 0x80000018, 0x32
N_STAB, N_PRIVATE, N_TYPE, N_EXTERNAL = 0xE0, 0x10, 0x0E, 0x01
LOOKED_UP_BY_NAME = 0xFE  # library ordinal of a symbol that the linker found in no library
PLATFORM_MACOS = 1

# Symbols of MLX and of metal-cpp, which is compiled into MLX.
OF_MLX = re.compile(r"3mlx4core|N3MTL|N2NS7Private")
# Owners of the other undefined symbols, for the summary.
OWNERS = (
    ("fmt", re.compile(r"3fmt2v")),
    ("spdlog", re.compile(r"6spdlog")),
    ("prometheus-cpp", re.compile(r"10prometheus")),
    ("the Rust library", re.compile(r"^_octavo_")),
    ("Objective-C", re.compile(r"^_objc_")),
    ("GoogleTest", re.compile(r"7testing")),
    ("libedit", re.compile(r"^_(el_|history|tok_)")),
    ("SQLite", re.compile(r"^_sqlite3_")),
    ("our own code", re.compile(r"6octavo")),
)


@dataclass
class MachO:
    file_type: int = 0
    platform: int = 0
    libraries: list[str] = field(default_factory=list)
    exported: set[str] = field(default_factory=set)
    undefined: dict[str, int] = field(default_factory=dict)  # symbol -> ordinal of its library, from 1


def text_at(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


def read_symbols(data: bytes, command: int, into: MachO) -> None:
    symbols, count, strings, _ = struct.unpack_from("<IIII", data, command + 8)
    for at in range(symbols, symbols + 16 * count, 16):
        name, kind, _, description, _ = struct.unpack_from("<IBBHQ", data, at)
        if kind & N_STAB or not kind & N_EXTERNAL:
            continue
        if kind & N_TYPE:
            if not kind & N_PRIVATE:
                into.exported.add(text_at(data, strings + name))
        else:
            into.undefined[text_at(data, strings + name)] = description >> 8


def read(path: Path) -> MachO:
    """Raises ValueError if the file is not a 64-bit arm64 Mach-O file."""
    data = path.read_bytes()
    magic, cpu, _, file_type, commands = struct.unpack_from("<IIIII", data)
    if magic != MAGIC_64 or cpu != CPU_ARM64:
        raise ValueError(f"{path}: magic {magic:#x}, cpu {cpu:#x}: not an arm64 Mach-O file")
    result = MachO(file_type)
    at = 32
    for _ in range(commands):
        command, size = struct.unpack_from("<II", data, at)
        if command == LC_SYMTAB:
            read_symbols(data, at, result)
        elif command in (LC_LOAD_DYLIB, LC_LOAD_WEAK_DYLIB):
            (name,) = struct.unpack_from("<I", data, at + 8)
            result.libraries.append(text_at(data, at + name))
        elif command == LC_BUILD_VERSION:
            (result.platform,) = struct.unpack_from("<I", data, at + 8)
        at += size
    return result


def owner(symbol: str, place: int, libraries: list[str]) -> str:
    if place != LOOKED_UP_BY_NAME and 0 < place <= len(libraries):
        return libraries[place - 1]
    return next((name for name, pattern in OWNERS if pattern.search(symbol)), "others")


def main() -> int:
    try:
        program, mlx = (read(Path(name)) for name in sys.argv[1:3])
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    wanted = {symbol for symbol in program.undefined if OF_MLX.search(symbol)}
    errors = [f"MLX does not export {symbol}" for symbol in sorted(wanted - mlx.exported)]
    if program.file_type != EXECUTE or mlx.file_type != DYLIB:
        errors.append("the arguments are not an executable and a dynamic library")
    if program.platform != PLATFORM_MACOS:
        errors.append("not for macOS")
    if not any(name.endswith("libmlx.dylib") for name in program.libraries):
        errors.append("does not load libmlx.dylib")
    if len(wanted) < 10:
        errors.append(f"uses only {len(wanted)} MLX symbols; was MLX linked?")
    owners = Counter(owner(symbol, place, program.libraries) for symbol, place in program.undefined.items())
    errors += [f"{count} symbols of {name} are undefined" for name, count in owners.items() if name == "our own code"]
    print(f"{sys.argv[1]}: Mach-O arm64 executable for macOS, {Path(sys.argv[1]).stat().st_size >> 20} MiB")
    print(f"  {len(wanted)} MLX symbols, {len(wanted & mlx.exported)} of them exported by {Path(sys.argv[2]).name}")
    for name, count in owners.most_common():
        print(f"  undefined: {count:4} {name}")
    others = [symbol for symbol, place in program.undefined.items() if owner(symbol, place, program.libraries) == "others"]
    for symbol in sorted(others)[:20]:
        print(f"    {symbol}")
    for error in errors[:50]:
        print(f"error: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
