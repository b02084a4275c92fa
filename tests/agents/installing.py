"""Installs agents from npm and PyPI, each into a folder of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from agent import Agent

TIMEOUT = 2400


class InstallError(Exception):
    """The last line of what the installer says."""


def folder_of(agent: Agent, prefix: Path) -> Path:
    return prefix / ("npm" if agent.from_npm else "py") / agent.name


def program_of(agent: Agent, prefix: Path) -> Path:
    folder = folder_of(agent, prefix)
    return folder / "node_modules" / ".bin" / agent.program if agent.from_npm else folder / "bin" / "python"


def install(agent: Agent, prefix: Path) -> None:
    folder = folder_of(agent, prefix)
    folder.mkdir(parents=True, exist_ok=True)
    caches = {"npm_config_cache": str(prefix / "cache" / "npm"), "PIP_CACHE_DIR": str(prefix / "cache" / "pip")}
    if agent.from_npm:
        (folder / "package.json").write_text("{}\n")
        command = [
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--prefix",
            folder,
            *(f"{name}@latest" for name in agent.packages),
        ]
    else:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        command = [program_of(agent, prefix), "-m", "pip", "install", "--quiet", *agent.packages]
    try:
        done = subprocess.run(command, cwd=folder, env=os.environ | caches, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise InstallError(f"not finished after {TIMEOUT} s") from None
    if done.returncode:
        lines = (
            [line for line in done.stderr.splitlines() if "error" in line.lower()] or done.stderr.splitlines() or ["no message"]
        )
        raise InstallError(lines[0][:200])


def version_of(agent: Agent, prefix: Path) -> str | None:
    """None: it is not installed."""
    if not program_of(agent, prefix).exists():
        return None
    if agent.from_npm:
        package = folder_of(agent, prefix) / "node_modules" / agent.packages[0] / "package.json"
        return json.loads(package.read_text())["version"] if package.exists() else None
    ask = f"import importlib.metadata; print(importlib.metadata.version({agent.packages[0]!r}))"
    done = subprocess.run([program_of(agent, prefix), "-c", ask], capture_output=True, text=True)
    return done.stdout.strip() or None
