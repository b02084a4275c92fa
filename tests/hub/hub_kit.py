"""What the tests of pulls share: repositories to serve, an environment of one's own, and looks at the cache."""

import hashlib
import os
import random
import subprocess
from pathlib import Path

from stub_hub import LFS_BYTES, StubHub

PROXIES = [f"{name}_proxy" for name in ("http", "https", "all", "no")]


def write_repo(folder: Path, repo: str, files: dict[str, int | bytes], seed: int = 1) -> Path:
    """`files`: by path, what is in them or how many random bytes."""
    rng = random.Random(seed)
    root = folder / repo
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else rng.randbytes(content))
    return root


def environment(home: Path, stub: StubHub | None = None, **more) -> dict[str, str]:
    """Nothing of the user's: neither models nor tokens nor proxies."""
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
    """As the hub gives it: SHA-256 of LFS files, else git's of a blob."""
    data = path.read_bytes()
    if len(data) > LFS_BYTES:
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def check_visible(home: Path, repo: str) -> int:
    """Every blob and every link of a snapshot is whole; returns how many links there are."""
    root = repo_folder(home, repo)
    for blob in (root / "blobs").glob("*"):
        if "." not in blob.name:
            assert hash_of(blob) == blob.name, f"{blob} is not what its name says"
    links = [path for path in (root / "snapshots").rglob("*") if path.is_symlink()]
    for link in links:
        if link.name.endswith(".tmp"):
            continue
        target = link.resolve()
        assert target.exists(), f"{link} leads nowhere"
        assert "." not in target.name, f"{link} leads to an unfinished file"
    return len(links)
