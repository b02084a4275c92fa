"""Minimal trees of Debian and Ubuntu: created once by debootstrap, copied for every use, entered with chroot. Needs root.

Uses the mirror of this machine's apt if that has the release, else debootstrap's default. debootstrap checks the release's signature; on
Debian, Ubuntu's keys come from the package ubuntu-keyring or from the file that OCTAVO_UBUNTU_KEYRING names. Processes in a tree have no
network except a private loopback interface."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("OCTAVO_CACHE_DIR", Path.home() / ".cache" / "octavo")) / "chroot"
SCRIPTS = Path("/usr/share/debootstrap/scripts")


@dataclass(frozen=True)
class Suite:
    codename: str
    title: str
    keyring: str
    script: str  # of debootstrap, if it is older than the suite
    components: str = "main"


DEBIAN = Suite("bookworm", "Debian 12", "/usr/share/keyrings/debian-archive-keyring.gpg", "sid")
UBUNTU = Suite("noble", "Ubuntu 24.04", os.environ.get("OCTAVO_UBUNTU_KEYRING", "/usr/share/keyrings/ubuntu-archive-keyring.gpg"),
               "gutsy", "main,universe")  # python3-venv is in universe


def apt_mirror(suite: Suite) -> str:
    """Empty if apt on this machine has no source for the suite."""
    listed = subprocess.check_output(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                                      f"Codename: {suite.codename}"], text=True).split()
    return listed[0] if listed else ""


def make_tree(suite: Suite, tree: Path, packages: tuple[str, ...]) -> None:
    if not Path(suite.keyring).exists():
        raise SystemExit(f"bare_tree: {suite.keyring}, which has the keys of {suite.title}, does not exist")
    own_script = SCRIPTS / suite.codename
    include = [f"--include={','.join(packages)}"] if packages else []
    done = subprocess.run(["debootstrap", "--variant=minbase", "--force-check-gpg", f"--keyring={suite.keyring}",
                           f"--components={suite.components}", *include, suite.codename, tree, apt_mirror(suite),
                           own_script if own_script.exists() else SCRIPTS / suite.script], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"bare_tree: debootstrap {suite.codename}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def cached_tree(suite: Suite, name: str, packages: tuple[str, ...]) -> Path:
    tree = CACHE / f"{suite.codename}-{name}"
    if not tree.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        half_made = Path(tempfile.mkdtemp(dir=CACHE))
        half_made.chmod(0o755)
        make_tree(suite, half_made, packages)
        half_made.rename(tree)
    return tree


@contextlib.contextmanager
def fresh_tree(suite: Suite, name: str, packages: tuple[str, ...] = ()):
    """Yields a writable copy of the tree, which is deleted when the block ends."""
    with tempfile.TemporaryDirectory(prefix="octavo-tree-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["cp", "-a", "--reflink=auto", cached_tree(suite, name, packages), tree], check=True)
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
