"""Runs the steps of a Containerfile in a tree. Supports one stage and the instructions that our Containerfile uses: FROM, ARG,
ADD, COPY, RUN, USER, ENV, WORKDIR, HEALTHCHECK, ENTRYPOINT, CMD, EXPOSE. Any other instruction is an error."""

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from bare_tree import bring, run_in


@dataclass
class Image:
    tree: Path
    base: str = ""
    user: str = "0"
    workdir: str = "/"
    env: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    healthcheck: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    cmd: list[str] = field(default_factory=list)


def instructions(text: str) -> list[tuple[str, str]]:
    kept = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n", " ", kept)
    return [(word.upper(), rest.strip()) for word, rest in
            (line.strip().split(None, 1) for line in joined.splitlines() if line.strip())]


def build(containerfile: Path, context: Path, tree: Path) -> Image:
    image = Image(tree)
    for word, rest in instructions(containerfile.read_text()):
        _step(image, word, re.sub(r"\$\{(\w+)\}", lambda found: image.arguments[found[1]], rest), context)
    return image


def _step(image: Image, word: str, rest: str, context: Path) -> None:
    match word:
        case "FROM":
            image.base = rest
        case "ARG":
            name, _, value = rest.partition("=")
            image.arguments[name] = value
        case "ADD" | "COPY":
            _add(image, word, rest, context)
        case "RUN":
            run_in(image.tree, rest, user=image.user, env=image.env, workdir=image.workdir)
        case "USER":
            image.user = rest
        case "ENV":
            name, _, value = rest.partition("=")
            image.env[name] = value
        case "WORKDIR":
            image.workdir = rest
            (image.tree / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        case "HEALTHCHECK":
            image.healthcheck = json.loads(rest.partition("CMD ")[2])
        case "ENTRYPOINT":
            image.entrypoint = json.loads(rest)
        case "CMD":
            image.cmd = json.loads(rest)
        case "EXPOSE":
            pass
        case _:
            raise SystemExit(f"containerfile: instruction {word} is not supported")


def _add(image: Image, word: str, rest: str, context: Path) -> None:
    *sources, target = rest.split()
    for source in sources:
        file = context / source
        if word == "ADD" and file.name.endswith((".tar.gz", ".tar.xz")):  # ADD unpacks archives
            (image.tree / target.lstrip("/")).mkdir(parents=True, exist_ok=True)
            subprocess.run(["tar", "-xf", file, "-C", image.tree / target.lstrip("/"), "--no-same-owner"], check=True)
        else:
            bring(image.tree, file, target.rstrip("/"))
