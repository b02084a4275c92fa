"""Minimal Debian trees: created once by debootstrap, copied for every use, entered with chroot. Needs root.

Uses the mirror of this machine's apt. Processes in a tree have no network except a private loopback interface."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SUITE = "bookworm"
CACHE = Path(os.environ.get("OCTAVO_CACHE_DIR", Path.home() / ".cache" / "octavo")) / "chroot"


def apt_mirror() -> str:
    listed = subprocess.check_output(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                                      f"Codename: {SUITE}"], text=True).split()
    if not listed:
        raise SystemExit(f"bare_tree: apt on this machine has no source for {SUITE}")
    return listed[0]


def cached_tree(name: str, packages: tuple[str, ...]) -> Path:
    tree = CACHE / f"{SUITE}-{name}"
    if not tree.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        half_made = Path(tempfile.mkdtemp(dir=CACHE))
        half_made.chmod(0o755)
        include = [f"--include={','.join(packages)}"] if packages else []
        subprocess.run(["debootstrap", "--variant=minbase", *include, SUITE, half_made, apt_mirror()], check=True,
                       stdout=subprocess.DEVNULL)
        half_made.rename(tree)
    return tree


@contextlib.contextmanager
def fresh_tree(name: str, packages: tuple[str, ...] = ()):
    """Yields a writable copy of the tree, which is deleted when the block ends."""
    with tempfile.TemporaryDirectory(prefix="octavo-tree-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["cp", "-a", "--reflink=auto", cached_tree(name, packages), tree], check=True)
        yield tree


def bring(tree: Path, file: Path, folder: str) -> str:
    """Copies a file into the tree and returns its path there."""
    (tree / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    shutil.copy(file, tree / folder.lstrip("/"))
    return f"{folder}/{file.name}"


def run_in(tree: Path, script: str, *, user: str = "0", env: dict[str, str] | None = None, workdir: str = "/") -> str:
    """Runs a bash script in the tree and returns its output. Processes that it started end with it."""
    outside = 'ip link set lo up; mount -t proc proc "$1/proc"; exec chroot --userspec="$2:$2" "$1" bash -euo pipefail -c "cd $3; $4"'
    clean = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "bash", "-euc", outside, "bash",
                           tree, user, workdir, script], env=clean | (env or {}), capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"in the tree: status {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout
