#!/usr/bin/env python3
"""Checks one instance of every Metal kernel without Apple's compiler, with the simulator's lint: what tools/first_mac.py
--simulated runs in place of tools/compile_metal.sh.

usage: lint_kernels.py WORK"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "src" / "kernels" / "metal" / "instances.txt"


def main():
    work = Path(sys.argv[1])
    # Fails if a kernel has no instance; the others are checked all the same.
    written = subprocess.run([sys.executable, str(ROOT / "tools" / "metal_instances.py"), "write", str(work)])
    first = {}
    for line in TABLE.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            first.setdefault(line.split()[0], "_".join(line.split()))
    compiler = ROOT / "tests" / "metal_sim" / "compile" / "build_instance.py"
    failed = [name for name in first.values() if subprocess.run(
        [sys.executable, "-S", "-E", str(compiler), "--lint-only", str(work / f"{name}.metal"), "/dev/null", str(work)]).returncode]
    for name in failed:
        print(f"{name} is not valid")
    return 1 if failed or written.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
