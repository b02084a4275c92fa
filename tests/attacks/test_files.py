"""Files and names from elsewhere: a hub that lies, and links in the cache and in --prefix-disk that lead out of them. Nothing
outside is read into the cache, written or deleted."""

import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from attack_kit import model_path, octavo_path

sys.path.insert(0, str(Path(__file__).parents[1] / "hub"))
import hub_kit  # noqa: E402
from stub_hub import StubHub  # noqa: E402

REPO_NAME = "org/tiny-GGUF"
COMMIT = "c" * 40


class LyingHub(http.server.ThreadingHTTPServer):
    """Answers every listing with `siblings`, and every download with a few bytes."""

    def __init__(self, siblings: list[dict], commit: str = COMMIT):
        listing = json.dumps({"sha": commit, "siblings": siblings}).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = listing if self.path.startswith("/api/") else b"downloaded"
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


def pull_from(hub, home: Path, name: str = "org/evil") -> subprocess.CompletedProcess:
    return hub_kit.run(octavo_path(), "pull", name, env=hub_kit.environment(home, hub))


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_symlink() or path.is_file()]


@pytest.mark.parametrize("hash_name", ["../../../../secret.txt", "/etc/passwd", "..", "a" * 39 + "/", "A" * 41])
def test_a_hash_that_is_a_path_is_refused(tmp_path, hash_name):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    siblings = [{"rfilename": name, "size": 6, "blobId": hash_name} for name in ("config.json", "model.safetensors")]
    with LyingHub(siblings) as hub:
        done = pull_from(hub, tmp_path)
        hub.shutdown()
    assert done.returncode == 1 and "is not a SHA-256 or SHA-1 in hex" in done.stderr, done.stderr
    assert secret.read_text() == "secret"
    assert not files_below(tmp_path / "hf")


@pytest.mark.parametrize("name", ["../config.json", "/tmp/config.json", "a/../../../../config.json", "a\\..\\config.json",
                                  "config.json\0", "\x1b]0;title\x07config.json"])
def test_a_file_name_that_is_a_path_is_not_used(tmp_path, name):
    siblings = [{"rfilename": each, "size": 10, "blobId": "a" * 40} for each in (name, "model.safetensors")]
    with LyingHub(siblings) as hub:
        done = pull_from(hub, tmp_path)
        hub.shutdown()
    assert done.returncode == 1 and "\x1b" not in done.stderr, done.stderr
    assert not files_below(tmp_path / "hf")


@pytest.mark.parametrize("commit", ["../../../../../../../../tmp/x", "main", "c" * 39 + "/", ""])
def test_a_commit_that_is_not_a_hash_is_refused(tmp_path, commit):
    siblings = [{"rfilename": name, "size": 10, "blobId": "a" * 40} for name in ("config.json", "model.safetensors")]
    with LyingHub(siblings, commit) as hub:
        done = pull_from(hub, tmp_path)
        hub.shutdown()
    assert done.returncode == 1 and "has no commit" in done.stderr, done.stderr
    assert not files_below(tmp_path / "hf")


@pytest.fixture
def home(tmp_path) -> Path:
    """A home folder with one pulled model; its hub is in `served`."""
    hub_kit.write_repo(tmp_path / "served", REPO_NAME, {"tiny-Q8_0.gguf": 60_000, "tiny-F16.gguf": 50_000})
    with StubHub(tmp_path / "served") as hub:
        done = pull_from(hub, tmp_path, f"{REPO_NAME}:Q8_0")
    assert done.returncode == 0, done.stderr
    return tmp_path


def move_out(folder: Path, outside: Path) -> Path:
    """Moves a folder out of the cache, leaves a link in its place, and returns where it is now."""
    outside.mkdir(exist_ok=True)
    moved = outside / folder.name
    folder.rename(moved)
    folder.symlink_to(moved)
    return moved


@pytest.mark.parametrize("part", ["", "snapshots", "blobs", "refs"])
@pytest.mark.parametrize("command", ["pull", "rm"])
def test_a_linked_folder_is_refused(home, part, command):
    folder = hub_kit.repo_folder(home, REPO_NAME) / part
    moved = move_out(folder, home / "outside")
    before = sorted(map(str, files_below(moved)))
    with StubHub(home / "served") as hub:
        flags = ("--yes",) if command == "rm" else ()
        name = REPO_NAME if command == "rm" else f"{REPO_NAME}:F16"
        done = hub_kit.run(octavo_path(), command, name, *flags, env=hub_kit.environment(home, hub))
    assert done.returncode == 1 and f"{folder} is a symbolic link".replace("//", "/") in done.stderr, done.stderr
    assert sorted(map(str, files_below(moved))) == before


def test_partial_files_that_are_links_are_not_written(home):
    """Downloads write to blobs/HASH.octavo.incomplete and .progress, and lock .locks/REPO/HASH.lock."""
    precious = home / "precious"
    precious.write_text("precious")
    root = hub_kit.repo_folder(home, REPO_NAME)
    blob = root / "blobs" / hub_kit.hash_of(home / "served" / REPO_NAME / "tiny-F16.gguf")
    lock = home / "hf" / "hub" / ".locks" / root.name / f"{blob.name}.lock"
    for planted in (Path(f"{blob}.octavo.incomplete"), Path(f"{blob}.octavo.progress"), lock):
        planted.unlink(missing_ok=True)
        planted.symlink_to(precious)
        with StubHub(home / "served") as hub:
            done = pull_from(hub, home, f"{REPO_NAME}:F16")
        assert done.returncode == 1 and "is a symbolic link" in done.stderr, done.stderr
        assert precious.read_text() == "precious", planted
        planted.unlink()
    with StubHub(home / "served") as hub:
        assert pull_from(hub, home, f"{REPO_NAME}:F16").returncode == 0
    assert hub_kit.check_visible(home, REPO_NAME) == 2


def test_a_link_in_the_disk_cache_is_refused(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    folder = tmp_path / "disk"
    folder.mkdir()
    (folder / "octavo.lock").symlink_to(precious)
    command = [octavo_path(), "serve", model_path(), "--port", "0", "--prefix-disk", folder, "--kv-memory", "256MiB"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and "octavo.lock is a symbolic link" in done.stderr, done.stderr
    assert precious.read_text() == "precious"
    assert os.readlink(folder / "octavo.lock") == str(precious)
