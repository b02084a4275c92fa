#!/usr/bin/env python3
"""Installs each package in a minimal Debian 12 or Ubuntu 24.04 (a chroot without compiler or network) and tests it: `octavo generate`,
then `octavo serve` and a request. Prints sizes and times. Needs root, debootstrap and the packages in dist/.

usage: check_chroot.py [--ubuntu] [tarball] [deb] [wheel] [container]   (default: all; the container is Debian's only)"""

import json
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bare_tree import DEBIAN, UBUNTU, Suite, bring, fresh_tree, run_in

REPO = Path(__file__).parents[2]
DIST = REPO / "dist"
MODELS = "/var/lib/models"
KEY = "secret"
MOST_SECONDS, MOST_MEGABYTES = 60, 60  # the megabytes exclude MLX's own libraries
MLX_LIBRARIES = ("libmlx", "liblapack", "libblas", "libgfortran", "libquadmath")
QUESTION = "Name the capital city of France."
REQUEST = json.dumps({"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 16, "temperature": 0})
# Sends a request with bash alone, because the tree has no curl. The server must then exit cleanly on SIGTERM.
SERVE_AND_ASK = """
%(serve)s --port 8000 >/tmp/serve.log 2>&1 &
server=$!
until grep -q 'Try it' /tmp/serve.log; do kill -0 $server || { cat /tmp/serve.log; exit 1; }; sleep 0.05; done
exec 3<>/dev/tcp/127.0.0.1/8000
printf 'POST /v1/chat/completions HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Bearer %(key)s\\r\\nContent-Type: application/json\\r\\nConnection: close\\r\\nContent-Length: %(length)d\\r\\n\\r\\n%%s' %(body)s >&3
cat <&3
%(also)s
kill $server
wait $server
"""
NO_COMPILER = "if command -v cc g++ gcc clang ld make cmake cargo; then exit 1; fi"


@dataclass
class Result:
    name: str
    file: Path
    tree_bytes: int   # of the installed files
    mlx_bytes: int
    install: float    # seconds
    answers: float    # seconds until both commands have answered, including installation


def serve_and_ask(serve: str, also: str = "") -> str:
    return SERVE_AND_ASK % {"serve": serve, "key": KEY, "length": len(REQUEST), "body": shlex.quote(REQUEST), "also": also}


def check_answer(text: str) -> None:
    if "Paris" not in text:
        raise SystemExit(f"'Paris' is missing from the output: {text[-3000:]}")


def installed_bytes(folder: Path, pattern: str = "*") -> int:
    return sum(file.lstat().st_size for file in folder.rglob(pattern) if file.is_file())


def measure(name: str, file: Path, tree: Path, install: str, octavo: str, folder: Path, model: str) -> Result:
    """`folder` is the folder in the tree that contains the package's files after installation."""
    run_in(tree, NO_COMPILER)
    start = time.monotonic()
    run_in(tree, install)
    installed = time.monotonic() - start
    check_answer(run_in(tree, f"{octavo} generate {model} --chat --max-tokens 16 -p '{QUESTION}'"))
    check_answer(run_in(tree, serve_and_ask(f"{octavo} serve {model}"), env={"OCTAVO_API_KEY": KEY}))
    seconds = time.monotonic() - start
    run_in(tree, f"{octavo} doctor || true; {octavo} --version")
    mlx = sum(installed_bytes(folder, library + "*") for library in MLX_LIBRARIES)
    return Result(name, file, installed_bytes(folder), mlx, installed, seconds)


def package(pattern: str) -> Path:
    found = sorted(DIST.glob(pattern))
    if not found:
        raise SystemExit(f"no dist/{pattern}; build it with tools/package/*.sh first")
    return found[-1]


def check_tarball(suite: Suite, model: Path) -> Result:
    file = package("octavo-*.tar.gz")
    folder = f"/srv/{file.name.removesuffix('.tar.gz')}"
    with fresh_tree(suite, "bare") as tree:
        path = bring(tree, file, "/tmp")
        there = bring(tree, model, MODELS)
        return measure("tarball", file, tree, f"tar -xzf {path} -C /srv", f"{folder}/bin/octavo", tree / folder.lstrip("/"), there)


def check_deb(suite: Suite, model: Path) -> Result:
    file = package("octavo_*.deb")
    with fresh_tree(suite, "bare") as tree:
        path = bring(tree, file, "/tmp")
        there = bring(tree, model, MODELS)
        result = measure("deb", file, tree, f"dpkg -i {path}", "octavo", tree / "usr/lib/octavo", there)
        result.tree_bytes += (tree / "usr/bin/octavo").stat().st_size + installed_bytes(tree / "usr/share/doc/octavo")
        run_in(tree, "dpkg --audit; dpkg --verify octavo; dpkg --purge octavo; if test -e /usr/bin/octavo -o -e /etc/octavo; then exit 1; fi")
        return result


def check_wheel(suite: Suite, model: Path) -> Result:
    file = package("octavo-*.whl")
    with fresh_tree(suite, "python", ("python3-venv", "ca-certificates")) as tree:
        path = bring(tree, file, "/tmp")
        there = bring(tree, model, MODELS)
        install = f"python3 -m venv /srv/venv; /srv/venv/bin/pip install --no-index {path}"
        result = measure("wheel", file, tree, install, "/srv/venv/bin/octavo", tree / "srv/venv/lib", there)
        package_folder = next((tree / "srv/venv/lib").glob("python3*/site-packages/octavo"))
        result.tree_bytes = installed_bytes(package_folder)
        return result


def check_container(suite: Suite, model: Path) -> Result:
    import containerfile

    file = package("octavo-*.tar.gz")
    with fresh_tree(suite, "bare") as tree:
        there = bring(tree, model, "/models")
        (tree / there.lstrip("/")).rename(tree / "models/model.gguf")
        start = time.monotonic()
        image = containerfile.build(REPO / "deploy/container/Containerfile", REPO, tree)
        installed = time.monotonic() - start
        # Runs the image's own command as its user, followed by its health check.
        answer = run_in(tree, serve_and_ask(shlex.join(image.entrypoint + image.cmd), shlex.join(image.healthcheck)),
                        user=image.user, workdir=image.workdir, env=image.env | {"OCTAVO_API_KEY": KEY})
        check_answer(answer)
        mlx = sum(installed_bytes(tree / "opt", library + "*") for library in MLX_LIBRARIES)
        return Result("container", file, installed_bytes(tree / "opt"), mlx, installed, time.monotonic() - start)


CHECKS = {"tarball": check_tarball, "deb": check_deb, "wheel": check_wheel, "container": check_container}


def main(suite: Suite, names: list[str]) -> None:
    model = Path(subprocess.check_output([sys.executable, REPO / "tools/smollm2_path.py"], text=True).strip())
    print(f"{suite.title:<14}{'file MB':>9}{'installed MB':>14}{'without MLX MB':>16}{'install s':>11}{'to answers s':>14}", flush=True)
    late = []
    for name in names:
        result = CHECKS[name](suite, model)
        own = (result.tree_bytes - result.mlx_bytes) / 1e6
        print(f"{name:<14}{result.file.stat().st_size / 1e6:>9.1f}{result.tree_bytes / 1e6:>14.1f}{own:>16.1f}"
              f"{result.install:>11.1f}{result.answers:>14.1f}", flush=True)
        if result.answers > MOST_SECONDS or own > MOST_MEGABYTES:
            late.append(name)
    if late:
        raise SystemExit(f"over {MOST_SECONDS} s or {MOST_MEGABYTES} MB: {', '.join(late)}")


if __name__ == "__main__":
    chosen = UBUNTU if "--ubuntu" in sys.argv else DEBIAN
    possible = [name for name in CHECKS if chosen is DEBIAN or name != "container"]
    named = [word for word in sys.argv[1:] if word != "--ubuntu"]
    if set(named) - set(possible):
        sys.exit(__doc__.splitlines()[-1])
    main(chosen, named or possible)
