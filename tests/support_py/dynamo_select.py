"""Dynamo's selection service: it follows the KV events of replicas and says which one should get a request; a small client sends it there."""

import contextlib
import json
import os
import subprocess
import urllib.request
from pathlib import Path

from dynamo_venv import python
from fleet import free_port, wait_for
from kv_events_kit import post_json, source_of


def event_flags(number: int, folder: Path) -> list[str]:
    """Flags of a replica whose events the service follows; the same after a restart."""
    ports = folder / f"events-{number}.json"
    if not ports.exists():
        ports.write_text(json.dumps([free_port(), free_port()]))
    events, replay = json.loads(ports.read_text())
    return ["--kv-events-config", json.dumps({"enable_kv_cache_events": True, "endpoint": f"tcp://127.0.0.1:{events}",
                                              "replay_endpoint": f"tcp://127.0.0.1:{replay}"})]


class Selection:
    def __init__(self, url: str, urls: list[str]):
        self.url, self.urls = url, urls

    def register(self, number: int, block_size: int) -> None:
        source = source_of(self.urls[number])
        post_json(f"{self.url}/workers", {
            "worker_id": number + 1, "model_name": "model", "endpoint": self.urls[number], "block_size": block_size,
            "kv_events_endpoints": {"0": source["endpoint"]}, "replay_endpoint": source["replay_endpoint"]})

    @contextlib.contextmanager
    def reserved(self, messages: list[dict]):
        """The replica that should answer the chat, and the name of its reservation: its load is counted until the block ends."""
        tokens = post_json(f"{self.urls[0]}/v1/chat/completions/render", {"model": "model", "messages": messages})["token_ids"]
        chosen = post_json(f"{self.url}/select_and_reserve", {"model_name": "model", "token_ids": tokens})
        try:
            yield chosen["endpoint"], chosen["selection_id"]
        finally:
            delete(f"{self.url}/reservations/{chosen['selection_id']}")

    def prefill_complete(self, reservation: str) -> None:
        post_json(f"{self.url}/reservations/{reservation}/prefill_complete", {})


def delete(url: str) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=30) as answer:
        answer.read()


@contextlib.contextmanager
def running(urls: list[str], log: Path, block_size: int = 32):
    port = free_port()
    with log.open("w") as out:
        process = subprocess.Popen([python(), "-m", "dynamo.select_service", "--port", str(port)], stdout=out, stderr=subprocess.STDOUT,
                                   env=os.environ | {"NO_COLOR": "1"})
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/health", process, log)
        selection = Selection(url, urls)
        for number in range(len(urls)):
            selection.register(number, block_size)
        wait_for(f"{url}/ready", process, log)
        yield selection
    finally:
        process.terminate()
        process.wait(timeout=20)
