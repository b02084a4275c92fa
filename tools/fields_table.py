#!/usr/bin/env python3
"""Writes docs/api-fields.md, every field of every route, from a running server's /openapi.json, which is made of the tables that
read requests.

usage: tools/fields_table.py URL   (tests/e2e/test_server_openapi.py fails when the page is out of date)"""

import json
import sys
import urllib.request
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "api-fields.md"
IGNORED = "Accepted and ignored."
HEAD = """# Every API field

<!-- Written by tools/fields_table.py from a server's /openapi.json; change the tables in src/api. -->

Every field is one of three kinds:

- **used**: it has the effect described here;
- **accepted and ignored**: it cannot change the output; the response header `x-octavo-ignored` lists it;
- **rejected**: it would change the output and is not supported, so the response is a 400 that names it. Fields that are not on this page
  are rejected too. Null and values without effect (such as an empty list of tools) are accepted.

`GET /openapi.json` returns the same information in OpenAPI format.
"""


def bounds(schema: dict) -> str:
    """What a value may be, in a few words."""
    if "anyOf" in schema:
        parts = [bounds(part) for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(part for part in parts if part))
    kind = schema.get("type", "")
    if isinstance(kind, list):
        kind = " or ".join(name for name in kind if name != "null")
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if kind in ("integer", "number"):
        return kind + number_range(schema)
    if kind == "array":
        inner = bounds(schema.get("items", {}))
        return f"list of {inner}" if inner else "list"
    return kind


def number_range(schema: dict) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        return f" above {schema['exclusiveMinimum']:g}" + (f", up to {high:g}" if high is not None else "")
    shown_high = high is not None and abs(high) < 2**31 - 1
    if low is None or abs(low) >= 2**31 - 1:
        return f" up to {high:g}" if shown_high else ""
    if low == high:
        return f" {low:g}"
    return f" {low:g} to {high:g}" if shown_high else f" from {low:g}"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def section(path: str, schema: dict, about: str) -> str:
    required = schema.get("required", [])
    used, ignored = [], []
    for name, field in schema["properties"].items():
        if field["description"].startswith(IGNORED):
            ignored.append(name)
        else:
            must = " **Required.**" if name in required else ""
            used.append(f"| `{name}` | {cell(bounds(field))} | {cell(field['description'])}.{must} |".replace("..", "."))
    text = f"\n## POST {path}\n\n{about}.\n\n| used | value | meaning |\n|---|---|---|\n" + "\n".join(used) + "\n"
    if ignored:
        text += "\n**Accepted and ignored**: " + ", ".join(f"`{name}`" for name in ignored) + ".\n"
    if refused := schema.get("x-octavo-refused"):
        text += "\n| rejected | reason |\n|---|---|\n" + "".join(f"| `{name}` | {cell(why)} |\n" for name, why in refused.items())
    return text


def page(document: dict) -> str:
    text = HEAD
    for path, methods in document["paths"].items():
        body = methods.get("post", {}).get("requestBody")
        if body:
            text += section(path, body["content"]["application/json"]["schema"], methods["post"]["summary"].rstrip("."))
    others = [(f"`{method.upper()} {path}`", doc.get("summary", "")) for path, methods in document["paths"].items()
              for method, doc in methods.items() if "requestBody" not in doc]
    return text + "\n## Routes without a body\n\n| route | description |\n|---|---|\n" + \
        "".join(f"| {route} | {cell(about)} |\n" for route, about in others)


if __name__ == "__main__":
    with urllib.request.urlopen(sys.argv[1].rstrip("/") + "/openapi.json") as answer:
        PAGE.write_text(page(json.load(answer)))
