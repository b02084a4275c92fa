"""Pictures and chat requests for tests of images."""

import base64
import json
import random
import re
import urllib.request

from bad_images import IEND, idat, ihdr, png


def picture(width: int = 96, height: int = 64, red: int = 200) -> bytes:
    """Stripes, so that the patches of an image differ."""
    row = b"\0" + b"".join(bytes((red, 90 * (x // 8 % 3), 40)) for x in range(width))
    return png(ihdr(width, height), idat(row * height), IEND)


def noise(width: int, height: int, seed: int) -> bytes:
    """A picture that cannot be compressed."""
    rows = random.Random(seed)
    return png(ihdr(width, height), idat(b"".join(b"\0" + rows.randbytes(3 * width) for _ in range(height))), IEND)


def base64_of(image: bytes) -> str:
    return base64.b64encode(image).decode()


def url_of(image: bytes) -> str:
    return "data:image/png;base64," + base64_of(image)


def image_url(image: bytes, **more) -> dict:
    return {"type": "image_url", "image_url": {"url": url_of(image), **more}}


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def post(url: str, path: str, body: dict, timeout: float = 120) -> dict:
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as response:
        return json.load(response)


def metric(url: str, name: str) -> float:
    with urllib.request.urlopen(url + "/metrics", timeout=60) as response:
        found = re.findall(rf"^{re.escape(name)}(?:\{{.*\}})? (\S+)$", response.read().decode(), re.MULTILINE)
    assert len(found) == 1, name
    return float(found[0])
