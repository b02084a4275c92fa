#!/usr/bin/env python3
"""Checks that src/ and bench/ keep to their layers: no upward or sideways include, and no MLX where MLX must not be visible.

    base -> kernels/types -> cache -> scheduler --+
    base -> text ---------------------------------+-> generation -> api -> server ---+
    base -> kernels/types -> kernels -> models (+ cache) -> engine (+ scheduler)     |
                                                   engine + api -> llm --------------+-> cli, capi
                                                   server + hub -> front ------------+
    base -> hub ---------------------------------------------------------------------+
    base -> state -> server
    scheduler -> distributed -> engine
    cache -> kv_events -> cli
    cache -> prefix_peer -> server
    base -> vision -> models, api

bench/ is next to src/; it may include the engine side, and only cli may include bench/. MLX must not be reached, not even through other
headers, from the layers in MLX_FREE_LAYERS, nor from any file whose first comment says "no MLX".

usage: check_layers.py [SRC]   (exit 1 and "file:line: message" lines when a rule is broken)"""

import re
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

DECIDES = ("base", "types", "cache", "scheduler")
ANSWERS = (*DECIDES, "text", "vision", "generation", "api")
COMPUTES = (*DECIDES, "distributed", "vision", "kernels", "models", "engine")
# What each layer may include besides itself.
MAY_INCLUDE = {
    "base": (),
    "types": DECIDES[:1],  # src/kernels/types
    "cache": DECIDES[:2],
    "scheduler": DECIDES[:3],
    "distributed": DECIDES,
    "kv_events": DECIDES[:3],
    "prefix_peer": DECIDES[:3],
    "text": ("base",),
    "vision": ("base",),
    "hub": ("base",),
    "state": ("base",),
    "generation": (*DECIDES, "text"),
    "api": (*DECIDES, "text", "vision", "generation"),
    "server": (*ANSWERS, "prefix_peer", "state"),
    "front": (*ANSWERS, "prefix_peer", "hub", "state", "server"),
    "kernels": ("base", "types"),
    "models": ("base", "types", "cache", "vision", "kernels"),
    "engine": COMPUTES[:-1],
    "llm": (*COMPUTES, "text", "generation", "api"),
    "bench": COMPUTES,
    "capi": (*COMPUTES, "text", "hub", "generation", "api", "llm"),
    "cli": (*COMPUTES, "kv_events", "prefix_peer", "text", "hub", "generation", "api", "state", "server", "front", "llm", "bench"),
}
SUBFOLDER_LAYERS = {"kernels/types": "types"}  # layers that are subfolders of another
BESIDE_SRC = ("bench",)  # layers that are folders of the repository itself
MLX_FREE_LAYERS = ("base", "types", "cache", "scheduler", "distributed", "kv_events", "prefix_peer", "text", "vision", "hub", "state",
                   "generation",                    "api", "server", "front", "llm", "capi", "cli")
SAYS_NO_MLX = re.compile(r"\bno MLX\b", re.IGNORECASE)
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


@dataclass(frozen=True)
class Include:
    line: int
    quoted: bool
    target: str

    @property
    def is_mlx(self) -> bool:
        return self.target.startswith("mlx/")


def layer_of(path: str) -> str:
    """Of a path below src/."""
    first = path.split("/")[0]
    return next((layer for folder, layer in SUBFOLDER_LAYERS.items() if path.startswith(folder + "/")), first)


class Source:
    def __init__(self, path: Path):
        self.path = path

    @cached_property
    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines()

    @cached_property
    def includes(self) -> list[Include]:
        matches = ((number, INCLUDE.match(line)) for number, line in enumerate(self.lines, 1))
        return [Include(number, match[1] == '"', match[2]) for number, match in matches if match]

    @cached_property
    def first_comment(self) -> str:
        block = []
        for line in self.lines:
            if not line.startswith("//"):
                break
            block.append(line.lstrip("/ "))
        return " ".join(block)


class Tree:
    def __init__(self, src: Path):
        self.src = src
        self.repository = src.parent
        folders = (src, *(self.repository / name for name in BESIDE_SRC))
        found = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in (".h", ".cpp"))
        self.sources = {path: Source(path) for path in found}

    def layer(self, path: Path) -> str:
        parts = path.relative_to(self.repository).parts
        return parts[0] if parts[0] in BESIDE_SRC else layer_of("/".join(parts[1:]))

    def resolve(self, source: Source, include: Include) -> Source | None:
        """Returns the project file that an include refers to, or None."""
        if not include.quoted:
            return None
        candidates = (self.src / include.target, self.repository / include.target, source.path.parent / include.target)
        return next((self.sources[path] for path in candidates if path in self.sources), None)

    def layer_errors(self, source: Source) -> list[str]:
        layer = self.layer(source.path)
        if layer not in MAY_INCLUDE:
            return [self.error(source, 1, f"{layer} is not a known layer ({', '.join(MAY_INCLUDE)})")]
        errors = []
        for include in source.includes:
            target = layer_of(include.target)
            if include.quoted and target in MAY_INCLUDE and target != layer and target not in MAY_INCLUDE[layer]:
                allowed = ", ".join((layer, *MAY_INCLUDE[layer]))
                errors.append(self.error(source, include.line, f"{layer} may not include {include.target} (only {allowed})"))
        return errors

    def must_not_see_mlx(self, source: Source) -> bool:
        return self.layer(source.path) in MLX_FREE_LAYERS or bool(SAYS_NO_MLX.search(source.first_comment))

    def way_to_mlx(self, source: Source, seen: set[Path]) -> list[str] | None:
        """Returns the chain of includes that ends in MLX, or None. `seen` holds files known not to reach MLX."""
        seen.add(source.path)
        for include in source.includes:
            if include.is_mlx:
                return [include.target]
            target = self.resolve(source, include)
            if target and target.path not in seen and (rest := self.way_to_mlx(target, seen)):
                return [include.target, *rest]
        return None

    def mlx_errors(self, source: Source) -> list[str]:
        if not self.must_not_see_mlx(source):
            return []
        errors, seen = [], {source.path}
        for include in source.includes:
            target = self.resolve(source, include)
            if include.is_mlx:
                errors.append(self.error(source, include.line, f"must not include MLX ({include.target})"))
            elif target and target.path not in seen and (chain := self.way_to_mlx(target, seen)):
                way = " -> ".join([include.target, *chain])
                errors.append(self.error(source, include.line, f"must not reach MLX: {way}"))
        return errors

    def error(self, source: Source, line: int, message: str) -> str:
        return f"{source.path.relative_to(self.repository)}:{line}: {message}"

    def errors(self) -> list[str]:
        return [error for source in self.sources.values() for error in self.layer_errors(source) + self.mlx_errors(source)]


def main(argv: list[str]) -> int:
    src = Path(argv[1]).resolve() if len(argv) > 1 else Path(__file__).resolve().parent.parent / "src"
    tree = Tree(src)
    if not tree.sources:
        print(f"check_layers: no sources in {src}", file=sys.stderr)
        return 2
    errors = tree.errors()
    print("\n".join(errors) or f"{len(tree.sources)} files follow the layer rules")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
