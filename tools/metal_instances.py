#!/usr/bin/env python3
"""Maintains src/kernels/metal/instances.txt, which lists the Metal kernels with the template arguments they are launched with,
one instance per line ("norm_rows half float"). MLX compiles a kernel at its first launch; with this table, Apple's compiler can
compile all of them in advance.

usage: metal_instances.py check            checks that every kernel has an instance and every line matches its kernel
                                           (exits with status 1 if not)
       metal_instances.py write FOLDER     writes the source of each instance to FOLDER/<instance>.metal
       metal_instances.py collect CACHE    regenerates the table from what the simulator's tests compiled, for example from
                                           build/release/metal_sim_cache after octavo_metal_test"""

import re
import sys
from pathlib import Path

from embed_metal import kernels_of, with_includes

FOLDER = Path(__file__).resolve().parent.parent / "src" / "kernels" / "metal"
TABLE = FOLDER / "instances.txt"
INSTANCE = re.compile(r'template \[\[host_name\("\w+"\)\]\] \[\[kernel\]\] decltype\((\w+)<([^>]*)>\)')

Instance = tuple[str, ...]  # kernel name and template arguments


def kernels() -> dict[str, tuple[str, int]]:
    """Returns, by kernel name, the source text and the number of template arguments."""
    texts = [with_includes(path, set()) for path in sorted(FOLDER.glob("shaders/*.metal"))]
    return {kernel.name: (text, len(kernel.template_arguments)) for text in texts for kernel in kernels_of(text)}


def table() -> list[Instance]:
    lines = TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []
    return [tuple(line.split()) for line in lines if line.strip() and not line.startswith("#")]


def problems(instances: list[Instance], known: dict[str, tuple[str, int]]) -> list[str]:
    found = [f"{name}: no instance" for name in known if not any(instance[0] == name for instance in instances)]
    for name, *arguments in instances:
        if name not in known:
            found.append(f"{name}: no such kernel")
        elif len(arguments) != known[name][1]:
            found.append(f"{' '.join([name, *arguments])}: the kernel takes {known[name][1]} template arguments")
    return found


def source(instance: Instance, text: str) -> str:
    """Returns the source in the form that kernels/metal/kernel_source.cpp generates."""
    name, *arguments = instance
    if not arguments:
        return text
    function = f"{name}<{', '.join(arguments)}>"
    return f'{text}\ntemplate [[host_name("{"_".join(instance)}")]] [[kernel]] decltype({function}) {function};\n'


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    known = kernels()
    for instance in table():
        (folder / f"{'_'.join(instance)}.metal").write_text(source(instance, known[instance[0]][0]), encoding="utf-8")
    print(f"{len(table())} instances in {folder}")


def collect(cache: Path) -> None:
    known = kernels()
    found = set()
    for path in cache.rglob("*.metal"):
        text = path.read_text(encoding="utf-8")
        match = INSTANCE.search(text)
        if match and match[1] in known:
            arguments = [part.strip() for part in match[2].split(",")]
            if len(arguments) == known[match[1]][1]:
                found.add((match[1], *arguments))
        elif not match:  # kernels without templates: their file is compiled once
            found |= {(name,) for name, (_, count) in known.items() if count == 0 and f"void {name}(" in text}
    lines = "\n".join(" ".join(instance) for instance in sorted(found))
    TABLE.write_text(f"# Written by tools/metal_instances.py collect.\n{lines}\n", encoding="utf-8")
    print(f"{len(found)} instances in {TABLE.name}")


def main(argv: list[str]) -> int:
    match argv[1:]:
        case ["write", folder]:
            write(Path(folder))
        case ["collect", cache]:
            collect(Path(cache))
        case ["check"]:
            pass
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    found = problems(table(), kernels())
    print("\n".join(found) or f"{len(table())} instances of {len(kernels())} kernels")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
