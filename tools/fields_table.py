#!/usr/bin/env python3
"""Prints what the tables of docs/server.md say of a route's fields, made from a running server's /openapi.json.

usage: tools/fields_table.py URL PATH   (tests/e2e/test_server_openapi.py fails when the page is out of date)"""

import json
import sys
import urllib.request

IGNORED = "Accepted and ignored."


def table(document: dict, path: str) -> str:
    schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    hints = [name for name, field in schema["properties"].items() if field["description"].startswith(IGNORED)]
    rows = {"used": [name for name in schema["properties"] if name not in hints], "accepted and ignored": hints,
            "refused": list(schema.get("x-octavo-refused", {}))}
    lines = [f"| {name} | {', '.join(f'`{field}`' for field in fields)} |" for name, fields in rows.items()]
    return "\n".join(["| | fields |", "|---|---|", *lines])


if __name__ == "__main__":
    url, path = sys.argv[1:]
    with urllib.request.urlopen(url.rstrip("/") + "/openapi.json") as answer:
        print(table(json.load(answer), path))
