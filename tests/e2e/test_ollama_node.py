"""Ollama's client for Node against several models: chat, generate, embed, list, ps, show, and streams."""

import fcntl
import json
import shutil
import subprocess
from pathlib import Path

import embedders
import pytest
from running_server import running

REPO = Path(__file__).parents[2]
CLIENTS = REPO / "tests" / "clients" / "node"


@pytest.fixture(scope="module")
def script() -> Path:
    """tests/clients/node/ollama.mjs next to the client, which is installed once, in the version of package.json."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    version = json.loads((CLIENTS / "package.json").read_text())["dependencies"]["ollama"]
    folder = REPO / "build" / "clients-ollama" / version
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "node_modules" / "ollama").exists():
            command = ["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", f"ollama@{version}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if done.returncode != 0:
                pytest.skip(f"npm cannot install ollama {version}: {done.stderr[-300:]}")
        return Path(shutil.copy(CLIENTS / "ollama.mjs", folder))


def test_the_client_for_node(octavo, make_model, tmp_path, script):
    chat = make_model("llama")
    embedder = embedders.dress(make_model("qwen3"), tmp_path / "embedder", flat=True)
    home = str(tmp_path)
    env = {"HOME": home, "HF_HOME": home, "HF_HUB_CACHE": home, "OLLAMA_MODELS": home, "HF_HUB_OFFLINE": "1"}
    with running(octavo, [chat, embedder], "--max-model-len", 512, env=env) as server:
        done = subprocess.run(["node", script, server.url, chat.name, embedder.name], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    assert "ok  ollama: embed" in done.stdout
