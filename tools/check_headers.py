#!/usr/bin/env python3
"""Compiles every header of src/, include/, bench/ and rust/include on its own, with the project's warnings as errors.

A header that relies on its includer's includes fails this check. If ccache is installed, repeated runs are fast.

usage: check_headers.py [HEADER...]   (default: all headers)"""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
WORK = Path("build/check/headers")
ALONE = ["-Wno-unused-function"]  # functions defined in a kernel header have no callers when it is compiled alone
JOBS = min(2, os.cpu_count() or 1)


def project_flags() -> list[str]:
    """Returns the warning flags of cmake/Compiler.cmake."""
    text = (REPO / "cmake" / "Compiler.cmake").read_text()
    options = re.search(r"target_compile_options\(octavo_flags INTERFACE(.*?)\)", text, re.DOTALL)[1]
    options = re.sub(r"#.*", "", options)
    return options.split()


def mlx_include() -> str:
    done = subprocess.run([REPO / ".venv/bin/python", "-m", "mlx", "--cmake-dir"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("check_headers: .venv has no MLX; run tools/bootstrap.sh")
    # --cmake-dir is mlx/share/cmake or the package folder, depending on the version.
    root = Path(done.stdout.strip())
    folder = next((p for p in (root, *root.parents) if (p / "include" / "mlx" / "mlx.h").exists()), None)
    if folder is None:
        sys.exit(f"check_headers: no include/mlx/mlx.h near {root}")
    return os.path.relpath(folder / "include", REPO)


def compile_command() -> list[str]:
    """Uses paths relative to the repository, so that all clones share ccache entries."""
    compiler = os.environ.get("CXX", "g++")
    launcher = ["ccache"] if shutil.which("ccache") else []
    return [*launcher, compiler, "-std=c++20", "-O0", *project_flags(), *ALONE, "-Isrc", "-I.", "-Iinclude", "-Irust/include",
            "-isystem", mlx_include(), "-MD", "-c"]


def is_proved(header: Path) -> bool:
    """Whether a source file includes the header first, so that every build compiles the header alone."""
    for name in (header.with_suffix(".cpp"), header.with_name(header.stem + "_test.cpp")):
        if name.exists():
            first = re.search(r'^\s*#include\s*[<"]([^>"]+)[>"]', name.read_text(encoding="utf-8"), re.MULTILINE)
            if first and header.as_posix().endswith("/" + first[1]):
                return True
    return False


def headers() -> list[str]:
    found = [*REPO.glob("src/**/*.h"), *REPO.glob("bench/**/*.h"), *REPO.glob("include/*.h"), *REPO.glob("rust/include/*.h")]
    return sorted(str(path.relative_to(REPO)) for path in found if not is_proved(path))


def compile_alone(command: list[str], header: str) -> str:
    """Returns the compiler's errors, or an empty string."""
    stub = WORK / (header.replace("/", "__") + ".cpp")
    name = header.removeprefix("src/").removeprefix("include/").removeprefix("rust/include/")
    (REPO / stub).write_text(f'#include "{name}"\n')
    done = subprocess.run([*command, str(stub), "-o", str(stub.with_suffix(".o"))], cwd=REPO, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{header} does not compile alone:\n{done.stderr.strip()}"


def main(argv: list[str]) -> int:
    (REPO / WORK).mkdir(parents=True, exist_ok=True)
    wanted, command = argv[1:] or headers(), compile_command()
    with ThreadPoolExecutor(JOBS) as pool:
        errors = [error for error in pool.map(lambda header: compile_alone(command, header), wanted) if error]
    print("\n".join(errors) or f"{len(wanted)} headers compile alone")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
