"""tools/check_macho.py on generated files: it must report symbols that MLX does not export."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_macho.py"
EXECUTABLE, LIBRARY = 2, 6
DEFINED, PRIVATE_DEFINED, UNDEFINED = 0x0F, 0x1F, 0x01
FIRST_LIBRARY = 1 << 8
PUBLIC = [f"__ZN3mlx4core{4 + len(str(i))}call{i}Ev" for i in range(12)]


def macho(file_type: int, symbols: list[tuple[str, int, int]], libraries: list[str], cpu: int = 0x0100000C) -> bytes:
    """Returns a Mach-O file. symbols: name, type and description."""
    strings, entries = b"\0", b""
    for name, kind, description in symbols:
        entries += struct.pack("<IBBHQ", len(strings), kind, 0, description, 0)
        strings += name.encode() + b"\0"
    commands = [struct.pack("<IIIIII", 0x32, 24, 1, 15 << 16, 15 << 16, 0)]
    for name in libraries:
        text = name.encode().ljust((len(name) + 8) // 8 * 8, b"\0")
        commands.append(struct.pack("<IIIIII", 0xC, 24 + len(text), 24, 0, 0, 0) + text)
    size = sum(map(len, commands)) + 24
    at = 32 + size
    commands.append(struct.pack("<IIIIII", 0x2, 24, at, len(symbols), at + len(entries), len(strings)))
    header = struct.pack("<IIIIIIII", 0xFEEDFACF, cpu, 0, file_type, len(commands), size, 0, 0)
    return header + b"".join(commands) + entries + strings


def check(folder: Path, wanted: list[str], offered: list[tuple[str, int, int]], **options) -> subprocess.CompletedProcess:
    program, library = folder / "octavo", folder / "libmlx.dylib"
    program.write_bytes(macho(EXECUTABLE, [(name, UNDEFINED, FIRST_LIBRARY) for name in wanted], ["@rpath/libmlx.dylib"], **options))
    library.write_bytes(macho(LIBRARY, offered, []))
    return subprocess.run([sys.executable, TOOL, program, library], capture_output=True, text=True)


def test_what_mlx_exports_passes(tmp_path):
    done = check(tmp_path, PUBLIC, [(name, DEFINED, 0) for name in PUBLIC])
    assert done.returncode == 0, done.stderr
    assert "12 MLX symbols, 12 of them exported" in done.stdout


@pytest.mark.parametrize("kind", [PRIVATE_DEFINED, UNDEFINED])
def test_what_mlx_keeps_to_itself_fails(tmp_path, kind):
    offered = [(name, DEFINED, 0) for name in PUBLIC[1:]] + [(PUBLIC[0], kind, 0)]
    done = check(tmp_path, PUBLIC, offered)
    assert done.returncode == 1
    assert f"MLX does not export {PUBLIC[0]}" in done.stderr


def test_our_own_code_must_be_whole(tmp_path):
    done = check(tmp_path, [*PUBLIC, "__ZN6octavo5thingEv"], [(name, DEFINED, 0) for name in PUBLIC])
    assert done.returncode == 0, "found in a library it is accepted"
    program = tmp_path / "octavo"
    symbols = [(name, UNDEFINED, FIRST_LIBRARY) for name in PUBLIC] + [("__ZN6octavo5thingEv", UNDEFINED, 0xFE00)]
    program.write_bytes(macho(EXECUTABLE, symbols, ["@rpath/libmlx.dylib"]))
    done = subprocess.run([sys.executable, TOOL, program, tmp_path / "libmlx.dylib"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "our own code" in done.stderr


def test_another_machines_file_is_refused(tmp_path):
    done = check(tmp_path, PUBLIC, [(name, DEFINED, 0) for name in PUBLIC], cpu=0x01000007)
    assert done.returncode == 1
    assert "arm64" in done.stderr
