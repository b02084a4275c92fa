#!/usr/bin/env python3
"""Writes docs/models.md from what is tested: tests/e2e/families.py, the constants of test_families.py, the families that
src/models/families/families.cpp knows and the shapes of tools/modelkit.

usage: tools/models_table.py [--check]   (--check writes nothing and fails when the file is out of date)

A new family needs an entry in families.py and a run of this; a family without an entry is an error."""

import argparse
import ast
import importlib.util
import re
import sys
from itertools import groupby
from pathlib import Path

REPO = Path(__file__).parents[1]
sys.path.insert(0, str(REPO / "tools"))
PAGE = REPO / "docs" / "models.md"
HEAD = """# Models

<!-- Written by tools/models_table.py from tests/e2e/families.py; change those. -->

A checkpoint is supported when its `model_type` is in the first column. `octavo info MODEL` tells before anything is loaded; for one
that is not, see [adding-a-model.md](adding-a-model.md).

Each row is a random checkpoint with the switches of the real one, made by [tools/modelkit](../tools/modelkit) and held to its oracle
in float32 by [test_families.py](../tests/e2e/test_families.py): the logits at every position of prompts of {lengths} tokens, whole,
in chunks and token by token, differ by at most {tolerance}; {greedy} greedy tokens are equal; the bits are the same alone and in
batches, in float32 and bfloat16. Weights were random, so the numbers are shown to be right, not that a real model's answers are good:
real weights were only there for SmolLM2-135M ([testing.md](testing.md)).

"""


def known_model_types(source: str) -> list[str]:
    """The first column of kFamilies."""
    table = re.search(r"\bkFamilies = (.*?);", source, re.DOTALL)
    return re.findall(r'\{\s*"([^"]+)"', table[1]) if table else []


def test_constants(source: str) -> dict:
    """TOLERANCE, GREEDY_TOKENS and the lengths in PROMPTS, without running the file."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value
            if isinstance(value, ast.Constant):
                found[node.targets[0].id] = value.value
            elif isinstance(value, ast.Call):
                found[node.targets[0].id] = [arg.value for arg in value.args if isinstance(arg, ast.Constant)]
    return found


def load_cases(path: Path) -> dict:
    spec = importlib.util.spec_from_file_location("families", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["families"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module.CASES


def unique(values) -> list[str]:
    return list(dict.fromkeys(value for value in values if value))


def table(cases: dict) -> str:
    lines = ["| `model_type` | stands for | what was tried | compared with |", "|---|---|---|---|"]
    by_type = groupby(sorted(cases.values(), key=lambda case: case.model_type), lambda case: case.model_type)
    for model_type, group in by_type:
        group = list(group)
        names = "; ".join(unique(case.stands_for for case in group))
        shown = "; ".join(unique(case.shows for case in group))
        oracles = "; ".join(unique(case.oracle for case in group))
        lines.append(f"| `{model_type}` | {names} | {shown} | {oracles} |")
    return "\n".join(lines) + "\n"


def shapes() -> str:
    """Real models by name, with random weights: for memory plans and speed."""
    from modelkit import recipe, recipes

    by_family: dict[str, list[str]] = {}
    for name, (family, _) in recipe.SHAPES.items():
        by_family.setdefault(family, []).append(name)
    for name, family in recipes.SHAPES.items():
        by_family.setdefault(family, []).append(name)
    text = "\n## Real shapes\n\n`tools/make_model.py OUT --shape NAME` makes these with random weights, for memory plans and speed:\n\n"
    return text + "".join(f"- {family}: {', '.join(f'`{n}`' for n in names)}\n" for family, names in sorted(by_family.items()))


def page(cases: dict, constants: dict) -> str:
    lengths = [str(n) for n in constants["PROMPTS"]]
    head = HEAD.format(lengths=", ".join(lengths[:-1]) + " and " + lengths[-1],
                       tolerance=f"{constants['TOLERANCE']:g}", greedy=constants["GREEDY_TOKENS"])
    return head + table(cases) + shapes()


def problems(cases: dict, known: list[str]) -> list[str]:
    tested = {case.model_type for case in cases.values()}
    return [f"model_type {name} has no case in tests/e2e/families.py" for name in known if name not in tested] + \
           [f"tests/e2e/families.py has {name}, which src/models/families/families.cpp does not know" for name in sorted(tested)
            if name not in known]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail when the file is out of date")
    options = parser.parse_args()
    cases = load_cases(REPO / "tests" / "e2e" / "families.py")
    known = known_model_types((REPO / "src" / "models" / "families.cpp").read_text())
    wrong = problems(cases, known) if known else ["src/models/families/families.cpp: found no kFamilies"]
    text = page(cases, test_constants((REPO / "tests" / "e2e" / "test_families.py").read_text()))
    if not options.check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        wrong.append("docs/models.md is out of date; tools/models_table.py writes it anew")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
