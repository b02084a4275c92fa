"""Sends all requests of a mix to llama.cpp's server, at most one per slot at a time. Takes a JSON object as its argument and
prints one as its last line."""

import json
import random
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

PORT = 18431


def ask(number: int, request: dict) -> int:
    draw = random.Random(number)
    body = {"prompt": [draw.randrange(3, 400) for _ in range(request["prompt_tokens"])],
            "n_predict": request["output_tokens"], "ignore_eos": True, "temperature": 0, "cache_prompt": False}
    call = urllib.request.Request(f"http://127.0.0.1:{PORT}/completion", json.dumps(body).encode(),
                                  {"Content-Type": "application/json"})
    with urllib.request.urlopen(call, timeout=3600) as answer:
        return json.load(answer)["tokens_predicted"]


def wait_until_ready(server: subprocess.Popen) -> None:
    for _ in range(600):
        if server.poll() is not None:
            raise SystemExit("llama-server exited during startup")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=1)
            return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("llama-server is not ready after two minutes")


def main() -> None:
    task = json.loads(sys.argv[1])
    slots = task["max_num_seqs"]
    longest = max(r["prompt_tokens"] + r["output_tokens"] for r in task["requests"])
    server = subprocess.Popen([task["program"], "-m", task["model"], "--port", str(PORT), "-np", str(slots), "-c",
                               str(slots * (longest + 64)), "-t", str(task["threads"])],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until_ready(server)
        start = time.perf_counter()
        with ThreadPoolExecutor(slots) as pool:
            made = sum(pool.map(ask, range(len(task["requests"])), task["requests"]))
        seconds = time.perf_counter() - start
    finally:
        server.kill()
        server.wait()
    wanted = sum(request["output_tokens"] for request in task["requests"])
    if made != wanted:
        raise SystemExit(f"generated {made} tokens instead of {wanted}")
    print(json.dumps({"output_tokens_per_second": made / seconds, "seconds": seconds}))


main()
