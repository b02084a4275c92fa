"""Shared by the download tests: repositories to serve, a clean environment and checks of the cache."""

import hashlib
import os
import random
import subprocess
from pathlib import Path

from stub_hub import LFS_BYTES, StubHub

PROXIES = [f"{name}_proxy" for name in ("http", "https", "all", "no")]


def write_repo(folder: Path, repo: str, files: dict[str, int | bytes], seed: int = 1) -> Path:
    """`files` maps each path to its content, or to a number of random bytes."""
    rng = random.Random(seed)
    root = folder / repo
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else rng.randbytes(content))
    return root


def environment(home: Path, stub: StubHub | None = None, **more) -> dict[str, str]:
    """An environment without the user's models, tokens and proxies."""
    dropped = {*PROXIES, *(name.upper() for name in PROXIES), "OLLAMA_MODELS", "XDG_CACHE_HOME"}
    env = {name: value for name, value in os.environ.items() if name not in dropped and not name.startswith("HF_")}
    env |= {"HOME": str(home), "HF_HOME": str(home / "hf"), "OCTAVO_HUB_RETRY_MS": "5", "NO_PROXY": "127.0.0.1"}
    if stub:
        env["HF_ENDPOINT"] = stub.url
    return env | {name: str(value) for name, value in more.items()}


def run(octavo: Path, *arguments, env: dict, timeout: float = 120) -> subprocess.CompletedProcess:
    return subprocess.run([str(octavo), *map(str, arguments)], env=env, capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL)


def repo_folder(home: Path, repo: str) -> Path:
    return home / "hf" / "hub" / f"models--{repo.replace('/', '--')}"


def hash_of(path: Path) -> str:
    """The hash that the hub reports: SHA-256 for LFS files, otherwise git's blob hash."""
    data = path.read_bytes()
    if len(data) > LFS_BYTES:
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def check_visible(home: Path, repo: str) -> int:
    """Checks that every blob and every snapshot link is complete; returns the number of links."""
    root = repo_folder(home, repo)
    for blob in (root / "blobs").glob("*"):
        if "." not in blob.name:
            assert hash_of(blob) == blob.name, f"{blob} does not match its hash"
    links = [path for path in (root / "snapshots").rglob("*") if path.is_symlink()]
    for link in links:
        if link.name.endswith(".tmp"):
            continue
        target = link.resolve()
        assert target.exists(), f"{link} is a dangling link"
        assert "." not in target.name, f"{link} points to an incomplete file"
    return len(links)
