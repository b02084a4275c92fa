"""Starts Open WebUI and sends one chat through it, as its page does: models, a streamed answer, a title."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

MODEL = os.environ["SERVER_MODEL"]
START_SECONDS = 200


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(url: str, body: dict | None = None, token: str = "", timeout: float = 60) -> bytes:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(url, json.dumps(body).encode() if body is not None else None, headers)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return answer.read()


def wait_for(url: str, process: subprocess.Popen) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            ask(url + "/health", timeout=2)
            return
        if process.poll() is not None:
            sys.exit(f"Open WebUI left with {process.returncode}")
        time.sleep(1)
    sys.exit(f"Open WebUI did not start within {START_SECONDS} s")


def chat(url: str) -> None:
    # Without authentication, signing in with no password is the way to a session.
    token = json.loads(ask(url + "/api/v1/auths/signin", {"email": "", "password": ""}))["token"]
    names = [model["id"] for model in json.loads(ask(url + "/api/models", token=token))["data"]]
    assert MODEL in names, names
    messages = [{"role": "user", "content": sys.argv[1]}]
    for stream in (False, True):
        print(ask(url + "/api/chat/completions", {"model": MODEL, "messages": messages, "stream": stream}, token).decode())
    print(ask(url + "/api/v1/tasks/title/completions", {"model": MODEL, "messages": messages}, token).decode())


def main() -> None:
    port = free_port()
    start = "import open_webui; open_webui.app()"
    process = subprocess.Popen([sys.executable, "-c", start, "serve", "--host", "127.0.0.1", "--port", str(port)])
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(url, process)
        chat(url)
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()


main()
