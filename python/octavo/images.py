"""Images in chat messages: vLLM's parts, as the parts of a request."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

# Modes of PIL that a PNG keeps as they are.
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA")


def _data_url(image: Any) -> str:
    """A PIL image as a PNG, which loses nothing."""
    if not callable(getattr(image, "save", None)) or not hasattr(image, "mode"):
        raise TypeError(f"image_pil must be a PIL.Image.Image, not {type(image).__name__}")
    kept = image if image.mode in _PNG_MODES else image.convert("RGB")
    file = io.BytesIO()
    kept.save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def _part(part: Any) -> Any:
    if not isinstance(part, Mapping) or "image_pil" not in part:
        return part
    return {"type": "image_url", "image_url": {"url": _data_url(part["image_pil"])}}


def _message(message: Mapping[str, Any]) -> Mapping[str, Any]:
    content = message.get("content")
    if isinstance(content, str) or not isinstance(content, Sequence):
        return message
    return {**message, "content": [_part(part) for part in content]}


def request_messages(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the messages with each image_pil part as an image_url part."""
    return [_message(message) for message in messages]
