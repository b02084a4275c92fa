"""Checks responses against the SDKs' types. SDKs accept anything; here a value must match its type and have no unknown
fields."""

import functools
import json
from typing import Any

import pydantic

# Sent by OpenAI's server but missing in its client's types.
UNTYPED = {("Response", "store")}


@functools.cache
def _adapter(kind: Any) -> pydantic.TypeAdapter:
    return pydantic.TypeAdapter(kind)  # takes longer than its use


def checked(kind: Any, value: Any) -> Any:
    """The value as that type (a model or a union of them)."""
    made = _adapter(kind).validate_python(value)
    unknown = list(_unknown_fields(made, type(made).__name__))
    assert not unknown, f"fields that {kind} does not know: {unknown}"
    return made


def _unknown_fields(value: Any, where: str):
    if isinstance(value, pydantic.BaseModel):
        kind = type(value).__name__
        yield from (f"{where}.{name}" for name in value.model_extra or {} if (kind, name) not in UNTYPED)
        for name in type(value).model_fields:
            yield from _unknown_fields(getattr(value, name), f"{where}.{name}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _unknown_fields(item, f"{where}[{number}]")


def named_events(body: bytes) -> list[tuple[str, dict]]:
    """Name and data of each event of a stream; comments are skipped."""
    events = []
    for block in body.decode().split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if not lines:
            continue
        assert len(lines) == 2 and lines[0].startswith("event: ") and lines[1].startswith("data: "), block
        events.append((lines[0][7:], json.loads(lines[1][6:])))
    return events
