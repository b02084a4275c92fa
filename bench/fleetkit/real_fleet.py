"""Servers on this machine behind round robin or Dynamo's selection service, and the requests of a trace sent to them."""

import contextlib
import http.client
import itertools
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from fleetkit import traces

REPO = Path(__file__).parents[2]
for folder in ("tests/e2e", "tests/support_py"):
    sys.path.insert(0, str(REPO / folder))

import running_server  # noqa: E402
from dynamo_indexer import free_port, python  # noqa: E402
from kv_events_kit import get_json, post_json, source_of  # noqa: E402


@dataclass
class Answer:
    ttft: float
    prompt: int
    cached: int
    output: int
    text: str


def ask(url: str, tokens: list[int], max_tokens: int, on_first) -> Answer:
    """Streams a completion; calls on_first() at the first token."""
    place, began = urlsplit(url), time.perf_counter()
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=600)
    body = {"prompt": tokens, "max_tokens": max_tokens, "ignore_eos": True, "temperature": 0, "stream": True,
            "stream_options": {"include_usage": True}}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(f"{url}: {response.status} {response.read().decode()}")
    ttft, text, usage = 0.0, "", {}
    for line in response:
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        if event.get("choices"):
            if not ttft:
                ttft = time.perf_counter() - began
                on_first()
            text += event["choices"][0]["text"]
        usage = event.get("usage") or usage
    connection.close()
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    return Answer(ttft, usage["prompt_tokens"], cached, usage["completion_tokens"], text)


class RoundRobin:
    def __init__(self, urls: list[str]):
        self.urls, self.turn = urls, itertools.count()

    def send(self, tokens: list[int], max_tokens: int) -> Answer:
        return ask(self.urls[next(self.turn) % len(self.urls)], tokens, max_tokens, lambda: None)


class Selection:
    """Dynamo's selection service chooses the server by its cache, as its KV events describe it, and by its load."""

    def __init__(self, service: str):
        self.service, self.number = service, itertools.count()

    def send(self, tokens: list[int], max_tokens: int) -> Answer:
        name = f"r{next(self.number)}"
        chosen = post_json(f"{self.service}/select_and_reserve", {"selection_id": name, "model_name": "m", "token_ids": tokens})
        try:
            return ask(chosen["endpoint"], tokens, max_tokens,
                       lambda: post_json(f"{self.service}/reservations/{name}/prefill_complete", {}))
        finally:
            free = urllib.request.Request(f"{self.service}/reservations/{name}", method="DELETE")
            urllib.request.urlopen(free, timeout=60).close()


@contextlib.contextmanager
def selection(urls: list[str], block_size: int, log: Path):
    port = free_port()
    with log.open("w") as out:
        process = subprocess.Popen([python(), "-m", "dynamo.select_service", "--port", str(port), "--threads", "1"], stdout=out,
                                   stderr=subprocess.STDOUT, env=os.environ | {"NO_COLOR": "1"})
    service, end = f"http://127.0.0.1:{port}", time.monotonic() + 60

    def wait_for(path: str) -> None:
        while True:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(service + path, timeout=5).close()
                return
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the selection service does not start: {log.read_text()[-1000:]}")
            time.sleep(0.1)

    try:
        wait_for("/health")
        for number, url in enumerate(urls):
            source = source_of(url)
            post_json(f"{service}/workers", {"worker_id": number + 1, "model_name": "m", "endpoint": url, "block_size": block_size,
                                             "data_parallel_start_rank": 0, "data_parallel_size": 1,
                                             "kv_events_endpoints": {"0": source["endpoint"]}, "replay_endpoint": source["replay_endpoint"]})
        wait_for("/ready")
        time.sleep(1)  # subscriptions
        yield Selection(service)
    finally:
        process.terminate()
        process.wait(timeout=20)


@contextlib.contextmanager
def servers(programs: list[Path], model: Path, threads: int, flags: list):
    """One server for each program. Yields the addresses, and the KV pages of each server."""
    with contextlib.ExitStack() as stack:
        urls = []
        for octavo in programs:
            config = {"enable_kv_cache_events": True, "endpoint": "tcp://127.0.0.1:*", "replay_endpoint": "tcp://127.0.0.1:*"}
            server = stack.enter_context(running_server.running(octavo, model, "--no-access-log", "--kv-events-config", json.dumps(config),
                                                                *flags, env={"OCTAVO_THREADS": str(threads)}))
            urls.append(server.url)
        yield urls, get_json(f"{urls[0]}/v1/octavo/memory")["pages"]["total"]


def replay(records: list[dict], policy, vocabulary: int) -> tuple[list[Answer], float]:
    """Sends a trace: conversations start at their time, and each turn follows the answer before it after its delay. Returns the answers
    in the trace's order, and the seconds from the first request to the last answer."""
    prompts = [traces.tokens_of(record, vocabulary) for record in records]
    answers: list[Answer | None] = [None] * len(records)
    failures: list[BaseException] = []
    sessions: dict[str, list[int]] = {}
    for number, record in enumerate(records):
        sessions.setdefault(record.get("session_id", str(number)), []).append(number)
    began = time.perf_counter()

    def run(turns: list[int]) -> None:
        try:
            for number in turns:
                record = records[number]
                wait = record["timestamp"] / 1e3 - (time.perf_counter() - began) if "timestamp" in record else record["delay"] / 1e3
                time.sleep(max(0.0, wait))
                answers[number] = policy.send(prompts[number], record["output_length"])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(turns,)) for turns in sessions.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise RuntimeError(f"{len(failures)} conversations failed; the first: {failures[0]!r}")
    return answers, time.perf_counter() - began


def figures(answers: list[Answer], seconds: float) -> dict:
    ttft = sorted(answer.ttft for answer in answers)
    return {"requests": len(answers), "seconds": seconds, "requests_per_second": len(answers) / seconds,
            "output_tokens_per_second": sum(answer.output for answer in answers) / seconds,
            "hit_rate": sum(answer.cached for answer in answers) / sum(answer.prompt for answer in answers),
            "ttft_p50": ttft[len(ttft) // 2], "ttft_p99": ttft[min(len(ttft) - 1, int(0.99 * len(ttft)))]}
