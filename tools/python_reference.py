#!/usr/bin/env python3
"""Generates docs/python-reference.md from the docstrings and signatures of python/octavo.

    tools/python_reference.py            writes the page
    tools/python_reference.py --check    exits with status 1 if the page is out of date
"""

import argparse
import dataclasses
import enum
import inspect
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
PAGE = REPO / "docs" / "python-reference.md"
sys.path.insert(0, str(REPO / "python"))

import octavo  # noqa: E402 (the path is set above)

HEAD = """# Python reference

Everything that `import octavo` offers, generated from the source by `tools/python_reference.py`. [Python](python.md) has examples.
"""


def text_of(thing) -> str:
    """Returns the docstring, if the class itself has one: dataclasses and enums get one from Python."""
    doc = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    if not doc or doc.startswith(f"{getattr(thing, '__name__', '')}("):
        return ""
    return inspect.cleandoc(doc)


def signature_of(name: str, function) -> str:
    """Returns the call as it is written in a program, one parameter per line if it is long."""
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    written = str(signature.replace(parameters=parameters)).replace("'", "")
    if len(name + written) <= 120:
        return name + written
    lines, star = [], False
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            lines.append("*")
            star = True
        lines.append(str(parameter).replace("'", ""))
    result = signature.return_annotation
    arrow = "" if result is inspect.Signature.empty else f" -> {result}".replace("'", "")
    return f"{name}(\n" + "".join(f"    {line},\n" for line in lines) + f"){arrow}"


def fields_table(cls) -> str:
    rows = ["| field | type | default |", "|---|---|---|"]
    for field in dataclasses.fields(cls):
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        default = "required" if required else "`[]`" if field.default is dataclasses.MISSING else f"`{field.default}`"
        kind = str(field.type).replace("|", "\\|")
        rows.append(f"| `{field.name}` | `{kind}` | {default} |")
    return "\n".join(rows)


def methods_of(cls) -> list[str]:
    parts = []
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            parts.append(f"### `{cls.__name__}.{name}`\n\n{text_of(member.fget)}")
        elif inspect.isfunction(member):
            parts.append(f"### `{cls.__name__}.{name}`\n\n```text\n{signature_of(name, member)}\n```\n\n{text_of(member)}")
    return parts


def section(name: str) -> str:
    thing = getattr(octavo, name)
    parts = [f"## `{name}`"]
    if not inspect.isclass(thing):
        return "\n\n".join([*parts, f"```text\n{signature_of(name, thing)}\n```", text_of(thing)]).rstrip()
    parts.append(text_of(thing))
    if dataclasses.is_dataclass(thing):
        parts.append(fields_table(thing))
    elif issubclass(thing, enum.Enum):
        parts.append("\n".join(f"- `{name}.{member.name}`" for member in thing))
    elif not issubclass(thing, (Exception, dict)):
        parts.append(f"```text\n{signature_of(name, thing.__init__).replace(' -> None', '')}\n```")
        parts += methods_of(thing)
    return "\n\n".join(part for part in parts if part)


def page() -> str:
    first = ["LLM", "AsyncLLM", "SamplingParams", "StructuredOutputsParams", "RequestOutput", "CompletionOutput"]
    rest = [name for name in octavo.__all__ if name not in first]
    return "\n\n".join([HEAD.rstrip(), *(section(name) for name in first + rest)]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    if not parser.parse_args().check:
        PAGE.write_text(page())
        return 0
    if PAGE.exists() and PAGE.read_text() == page():
        return 0
    print(f"{PAGE.relative_to(REPO)} is out of date: run tools/python_reference.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
