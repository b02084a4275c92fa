"""A bare Debian in a folder: made once by debootstrap, copied for every use, run in by chroot. Needs root.

The mirror is the one this machine's apt uses. In a tree there is no network but its own loopback."""

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
        raise SystemExit(f"bare_tree: apt on this machine knows no {SUITE}")
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
    """A copy that may be written to, gone when the block ends."""
    with tempfile.TemporaryDirectory(prefix="octavo-tree-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["cp", "-a", "--reflink=auto", cached_tree(name, packages), tree], check=True)
        yield tree


def bring(tree: Path, file: Path, folder: str) -> str:
    """Copies a file into the tree; returns its path there."""
    (tree / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    shutil.copy(file, tree / folder.lstrip("/"))
    return f"{folder}/{file.name}"


def run_in(tree: Path, script: str, *, user: str = "0", env: dict[str, str] | None = None, workdir: str = "/") -> str:
    """Runs a bash script in the tree; returns what it printed. Its processes end with it."""
    outside = 'ip link set lo up; mount -t proc proc "$1/proc"; exec chroot --userspec="$2:$2" "$1" bash -euo pipefail -c "cd $3; $4"'
    clean = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "bash", "-euc", outside, "bash",
                           tree, user, workdir, script], env=clean | (env or {}), capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"in the tree: status {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout
