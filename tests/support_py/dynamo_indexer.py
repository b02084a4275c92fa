"""Dynamo's standalone KV indexer, in an environment of its own."""

import contextlib
import os
import subprocess
import time
import urllib.error
from pathlib import Path

from dynamo_venv import python
from fleet import free_port
from kv_events_kit import get_json, post_json


class Indexer:
    def __init__(self, url: str, block_size: int):
        self.url, self.block_size = url, block_size

    def register(self, instance: int, source: dict, endpoint: str | None = None) -> None:
        """`endpoint`: where it subscribes instead of at the source itself."""
        body = {"instance_id": instance, "endpoint": endpoint or source["endpoint"], "model_name": "m", "block_size": self.block_size}
        if source["replay_endpoint"]:
            body["replay_endpoint"] = source["replay_endpoint"]
        post_json(f"{self.url}/register", body)
        end = time.monotonic() + 20
        while not any(worker["instance_id"] == instance and worker["status"] == "active" for worker in get_json(f"{self.url}/workers")):
            assert time.monotonic() < end
            time.sleep(0.05)

    def unregister(self, instance: int) -> None:
        post_json(f"{self.url}/unregister", {"instance_id": instance, "model_name": "m"})

    def hits(self, tokens: list[int]) -> dict[int, int]:
        """The cached tokens that it predicts, by instance."""
        answer = post_json(f"{self.url}/query", {"token_ids": tokens, "model_name": "m"})
        return {int(instance): next(iter(ranks.values())) for instance, ranks in answer["scores"].items()}


@contextlib.contextmanager
def running_indexer(block_size: int, log: Path):
    port = free_port()
    with log.open("w") as out:
        process = subprocess.Popen([python(), "-m", "dynamo.indexer", "--port", str(port), "--block-size", str(block_size)], stdout=out,
                                   stderr=subprocess.STDOUT, env=os.environ | {"NO_COLOR": "1"})
    try:
        url, end = f"http://127.0.0.1:{port}", time.monotonic() + 30
        while True:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                get_json(f"{url}/workers")
                break
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        yield Indexer(url, block_size)
    finally:
        process.terminate()
        process.wait(timeout=20)
