"""Requests with a JSON body."""

import json
import urllib.error
import urllib.request


def post(url: str, body: dict) -> tuple[int, dict]:
    """Returns the status and the body of the response."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())
