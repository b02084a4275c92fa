#!/usr/bin/env python3
"""Compiles one Metal kernel file for this machine's CPU.

usage: build_instance.py [options] KERNEL.metal OUTPUT.so WORK   (status 1 and "file:line: error: message" lines if it is not valid)

WORK holds the precompiled shim, which compilations share. OCTAVO_METAL_CXX names the compiler, which must be clang 19.
With --lint-only, nothing is compiled and OUTPUT.so is not written. With --costs, the kernel is optimised as for a GPU and its
operations are counted (operations.py); faults are then not detected and the source is not linted."""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import lint
import operations
from rewrite import Rewriter

HERE = Path(__file__).resolve().parent
SHIM = HERE.parent / "shim"
CXX = os.environ.get("OCTAVO_METAL_CXX") or "clang++-19"

PREPROCESS = ["-E", "-x", "c++", "-nostdinc", "-undef", "-D__METAL__=1", "-D__METAL_VERSION__=310", "-D__HAVE_BFLOAT__=1",
              "-I", str(HERE / "metal_headers")]  # fmt: skip
# The shim needs C++17. Literals are float; a product and a sum round separately; half and bfloat round after each operation.
LANGUAGE = [
    "-std=c++17", f"-I{SHIM}", "-ffp-contract=off", "-fsigned-char", "-fno-exceptions", "-fno-rtti",
    "-Xclang", "-cl-single-precision-constant",
    "-Wno-user-defined-literals", "-Wno-reserved-user-defined-literal", "-Wno-unknown-pragmas", "-Wno-undefined-inline",
    "-Wno-duplicate-decl-specifier", "-Wno-ignored-qualifiers", "-Wno-unknown-attributes",
]  # fmt: skip
COMMON = [*LANGUAGE, "-fPIC", "-Xclang", "-ffloat16-excess-precision=none", "-Xclang", "-fbfloat16-excess-precision=none"]
# The simulator implements the thread sanitizer's hooks, so every access of the kernel calls it.
CHECKED = [
    "-O1", "-g1", "-gdwarf-4", "-fno-vectorize", "-fno-slp-vectorize", "-fno-math-errno",
    "-fstack-clash-protection",  # a stack overflow hits the guard page
    "-fsanitize=thread,alignment,bounds,shift,integer-divide-by-zero,signed-integer-overflow",
    "-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-instrument-read-before-write=1",
]  # fmt: skip
# For counting costs: everything inlined and unrolled, as GPU compilers do.
OPTIMISED = [
    "-DMSL_COSTS", "-O2", "-fno-vectorize", "-fno-slp-vectorize", "-fno-math-errno",
    "-mllvm", "-inline-threshold=100000", "-mllvm", "-unroll-threshold=1000",
]  # fmt: skip
COUNTED = [
    *OPTIMISED, "-g1", "-gdwarf-4", "-fsanitize=thread",
    "-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-instrument-read-before-write=1",
]  # fmt: skip
# A GPU with 32 lanes per simdgroup and 32-bit registers.
AMD = ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx1030", "-nogpulib"]
MACHINE = ["-mf16c", "-mfma"] if os.uname().machine == "x86_64" else []
COMMON += MACHINE


def run(command: list[str]) -> str:
    """Returns the diagnostics of a failed command."""
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr or f"error: {command[0]} ended with {done.returncode}\n"


def compiled_ahead(flags: list[str], work: Path) -> Path:
    """The shim as a precompiled header for these flags."""
    compiler = Path(shutil.which(CXX) or CXX).resolve()
    key = hashlib.sha256(repr([str(compiler), compiler.stat().st_mtime, str(SHIM), flags]).encode())
    for header in sorted(SHIM.glob("*.h")):
        key.update(header.read_bytes())
    path = work / f"msl_{key.hexdigest()[:16]}.pch"
    if not path.exists():
        made = path.with_suffix(f".{os.getpid()}")
        complaints = run([CXX, *flags, "-Xclang", "-fno-pch-timestamp", "-x", "c++-header", str(SHIM / "msl.h"), "-o", str(made)])
        if complaints:
            sys.exit(complaints)
        made.rename(path)  # atomic: another process may be waiting for it
    return path


def rewritten(source: str, for_lint: bool, path: Path) -> list[str]:
    """Writes the C++ code; returns the rewriter's errors."""
    rewriter = Rewriter(source, for_lint)
    path.write_text(rewriter.run(), encoding="utf-8")
    return rewriter.errors


def build(source: Path, made: Path, output: Path, work: Path) -> list[str]:
    ahead = compiled_ahead([*COMMON, *CHECKED], work)
    complaints = run([CXX, *COMMON, *CHECKED, "-include-pch", str(ahead), "-c", str(source), "-o", str(made)])
    complaints = complaints or run([CXX, "-shared", str(made), "-o", str(output), "-lm"])
    return [complaints.strip()] if complaints else []


def lint_and_build(source: str, output: Path, work: Path, lint_only: bool) -> list[str]:
    """Runs both concurrently. The lint reports errors in terms of MSL, so they come first."""
    linted, built, made = (Path(f"{output.with_suffix('')}{end}") for end in (".lint.cpp", ".cpp", ".o"))
    try:
        errors = rewritten(source, True, linted) or rewritten(source, False, built)
        if errors:
            return errors
        ahead = compiled_ahead([*COMMON, "-DMSL_LINT"], work)
        command = [CXX, *COMMON, *lint.FLAGS, "-include-pch", str(ahead), str(linted)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
            errors = [] if lint_only else build(built, made, output, work)
            return lint.complaints(command, running) or errors
    finally:
        for path in (linted, built, made):
            path.unlink(missing_ok=True)


def build_counted(source: str, output: Path, work: Path, arguments: argparse.Namespace) -> list[str]:
    """The kernel with the counters of operations.py."""
    constants = {int(index): int(bits) for index, bits in (pair.split("=") for pair in arguments.constants.split(",") if pair)}
    rewriter = Rewriter(source, False, constants)
    rewriter.is_ours = arguments.mlx is None
    cpp, ir, made = (Path(f"{output.with_suffix('')}{end}") for end in (".cpp", ".ll", ".o"))
    contract = [] if rewriter.is_ours else ["-ffp-contract=on"]
    flags = [*COMMON, *COUNTED, *contract]
    try:
        cpp.write_text(rewriter.run(), encoding="utf-8")
        if rewriter.errors:
            return rewriter.errors
        ahead = compiled_ahead(flags, work)
        complaints = run([CXX, *flags, "-include-pch", str(ahead), "-S", "-emit-llvm", str(cpp), "-o", str(ir)])
        if not complaints:
            registers = registers_of(cpp, [*LANGUAGE, *OPTIMISED, *contract])
            ir.write_text(operations.counted(ir.read_text(encoding="utf-8"), registers), encoding="utf-8")
            complaints = run([CXX, "-O2", "-fPIC", *MACHINE, "-Xclang", "-disable-llvm-passes", "-c", str(ir), "-o", str(made)])
        complaints = complaints or run([CXX, "-shared", str(made), "-o", str(output), "-lm"])
        return [complaints.strip()] if complaints else []
    finally:
        for path in (cpp, ir, made):
            if not os.environ.get("OCTAVO_METAL_KEEP"):
                path.unlink(missing_ok=True)


def host_headers() -> list[str]:
    """The folders of the C++ library, which the AMD target does not know."""
    done = subprocess.run([CXX, "-E", "-v", "-x", "c++", "/dev/null"], capture_output=True, text=True)
    found = re.search(r"#include <...> search starts here:\n(.*?)End of search list", done.stderr, re.S)
    return [line.strip() for line in found[1].splitlines() if "/clang/" not in line] if found else []


def registers_of(cpp: Path, flags: list[str]) -> tuple[int, int]:
    """Vector registers per lane, and bytes per lane that did not fit into registers, of clang's AMD back end. The most of any kernel
    in the file. Zeros if the compiler lacks that back end."""
    ir, assembly = cpp.with_suffix(".amd.ll"), cpp.with_suffix(".amd.s")
    headers = [flag for folder in host_headers() for flag in ("-isystem", folder)]
    host = ["-nostdinc++", f"-D__{os.uname().machine}__", *headers, "-include", str(SHIM / "msl.h")]
    try:
        if run([CXX, *AMD, *flags, *host, "-DMSL_REGISTERS", "-S", "-emit-llvm", str(cpp), "-o", str(ir)]):
            return 0, 0
        # Threadgroups of at most four simdgroups, so that the back end does not save registers for larger ones.
        text = re.sub(
            r"^(attributes #\d+ = \{)", r'\1 "amdgpu-flat-work-group-size"="32,128"', ir.read_text(encoding="utf-8"), flags=re.M
        )
        ir.write_text(text, encoding="utf-8")
        if run([CXX, *AMD, "-O2", "-S", str(ir), "-o", str(assembly)]):
            return 0, 0
        text = assembly.read_text(encoding="utf-8")
        counts = [
            max(map(int, re.findall(rf"^ +\.{key}: +(\d+)", text, re.M)), default=0)
            for key in ("vgpr_count", "private_segment_fixed_size")
        ]
        return counts[0], counts[1]
    finally:
        for path in (ir, assembly):
            path.unlink(missing_ok=True)


def options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lint-only", action="store_true")
    parser.add_argument("--costs", action="store_true")
    parser.add_argument("--constants", default="", help="function constants as INDEX=BITS,...; with --costs")
    parser.add_argument("--mlx", help="folder of MLX's headers: the kernel is MLX's, compiled as MLX compiles it; with --costs")
    for name in ("kernel", "output", "work"):
        parser.add_argument(name, type=Path)
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    arguments = options(argv[1:])
    kernel, output, work = arguments.kernel, arguments.output.resolve(), arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    headers = ["-I", str(HERE / "mlx_headers"), "-I", arguments.mlx] if arguments.mlx else []
    loops = [] if arguments.costs else ["-DMETAL_SIMULATED"]  # not unrolled, which would take long to compile
    # Only the file name, so that messages contain no folder.
    done = subprocess.run([CXX, *PREPROCESS, *loops, *headers, kernel.name], cwd=kernel.parent, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    if arguments.costs:
        errors = build_counted(done.stdout, output, work, arguments)
    else:
        errors = lint_and_build(done.stdout, output, work, arguments.lint_only)
    if errors:
        print("\n".join(errors), file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
