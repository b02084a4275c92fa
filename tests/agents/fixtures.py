"""Makes fixtures of recorded requests: long texts are cut, and names of this machine, keys and random ids are replaced."""

import json
import re

from agent import KEY, MODEL, Agent, Place
from recorder import Exchange

LONGEST = 60  # characters of a text that are kept
DROPPED_HEADERS = {"host", "content-length", "connection", "accept-encoding"}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
LONG_HEX = re.compile(r"\b[0-9a-f]{40,}\b")


def fixture_of(agent: Agent, version: str, date: str, exchanges: list[Exchange], place: Place) -> dict:
    """Requests without a new field are left out; the first and the last one of each route are kept."""
    kept, shapes = [], set()
    newest = {exchange.route: exchange for exchange in exchanges}
    for exchange in exchanges:
        new = {(exchange.route, path) for path in field_paths(exchange.json)} | {(exchange.method, exchange.route)}
        if not new <= shapes or exchange is newest[exchange.route]:
            kept.append(_request(exchange, place))
        shapes |= new
    return {"agent": agent.title, "version": version, "date": date, "requests": kept}


def _request(exchange: Exchange, place: Place) -> dict:
    headers = {name: value for name, value in exchange.headers.items() if name.lower() not in DROPPED_HEADERS}
    request = {"method": exchange.method, "path": exchange.path, "headers": headers}
    if exchange.json is not None:
        request["body"] = exchange.json
    names = {
        str(place.work): "/srv/project",
        str(place.home): "/srv/user",
        str(place.work).replace("/", "-"): "-srv-project",
        place.url: "http://127.0.0.1:8000",
        KEY: "KEY",
        "/home" + "/user": "/srv/user",  # an example in descriptions of tools
    }
    return _plain(request, names)


def _plain(value, names: dict[str, str]):
    if isinstance(value, dict):
        return {key: MODEL if key == "model" else _plain(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, names) for item in value]
    if not isinstance(value, str):
        return value
    for name, instead in names.items():
        value = value.replace(name, instead)
    value = UUID.sub("00000000-0000-4000-8000-000000000000", LONG_HEX.sub("0" * 40, value))
    is_json = value[:1] in "{[" and len(value) < 2000  # cutting it could make it invalid
    if len(value) <= LONGEST or is_json:
        return value
    return f"{value[:LONGEST]}... [{len(value) - LONGEST} characters cut]"


SCHEMAS = {"parameters", "input_schema", "schema"}  # their members are not fields of the request


def field_paths(value, path: str = "") -> set[str]:
    """The fields of a body: "messages[].content[text].text". An entry of a list with a type is named by it."""
    found = set()
    if isinstance(value, dict):
        for name, item in value.items():
            here = f"{path}.{name}" if path else name
            found.add(here)
            if name not in SCHEMAS and not here.endswith("[tool_use].input"):
                found |= field_paths(item, here)
    elif isinstance(value, list):
        for item in value:
            kind = item.get("type") if isinstance(item, dict) else None
            found |= field_paths(item, f"{path}[{kind if isinstance(kind, str) else ''}]")
    return found


def write(path, fixture: dict) -> None:
    path.write_text(json.dumps(fixture, indent=1, ensure_ascii=False) + "\n")
