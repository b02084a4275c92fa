"""Replays an agent's conversation turn by turn: a long prefix, then alternating assistant messages and tool results.

As a program it replays one of 30,000 tokens three times - without a cache, with one, and after a restart from the disk
tier - and prints what each cost:

    prefix_replay.py OCTAVO [--shape medium] [--family llama] [--turns 20] [--first 10000] [--step 530]"""

import argparse
import http.client
import json
import random
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

REPO = Path(__file__).parents[2]
for folder in ("tools", "tests/e2e"):
    sys.path.insert(0, str(REPO / folder))

import modelkit  # noqa: E402
import running_server  # noqa: E402

WORDS = ("the capital of France is Paris and river that runs through city a server takes request reads prompt writes one token "
         "after other what weather like today it raining in north sunny south def add return for range print people walked "
         "on moon others watched them television once upon time there was small engine could not stop counting own pages").split()


@dataclass
class Turn:
    text: str
    ttft: float
    prompt: int
    cached: int
    header: str

    @property
    def report(self) -> dict[str, str]:
        """The fields of the x-octavo-cache header."""
        return dict(re.findall(r"(\w+)=([^;]*)", self.header))


def make_long_context(path: Path, family: str, shape: str = "tiny", context: int = 40960, **fields) -> Path:
    """A checkpoint whose context is longer than its shape's; random weights allow that."""
    modelkit.make(path, modelkit.Recipe(family=family, shape=shape, **fields))
    for name in ("config.json", "tokenizer_config.json"):
        file = path / name
        config = json.loads(file.read_text())
        for part in (config, config.get("text_config", {})):
            for key in ("max_position_embeddings", "model_max_length"):
                if key in part:
                    part[key] = context
        file.write_text(json.dumps(config))
    return path


def conversation(turns: int, first_words: int, step_words: int, seed: int = 1) -> list[list[dict]]:
    """The messages of every turn's request; each starts with all messages of the previous one."""
    rng = random.Random(seed)

    def words(count: int) -> str:
        return " ".join(rng.choice(WORDS) for _ in range(count))

    messages = [{"role": "system", "content": words(first_words)}, {"role": "user", "content": words(20)}]
    asked = []
    for number in range(turns):
        asked.append(list(messages))
        messages.append({"role": "assistant", "content": f"I read file {number}. " + words(step_words // 4)})
        messages.append({"role": "user", "content": f"Result of call {number}: " + words(step_words - step_words // 4)})
    return asked


def ask(url: str, messages: list[dict], **fields) -> Turn:
    """Sends a streamed request, to measure the time to the first token."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=600)
    body = {"messages": messages, "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 24, "seed": 5,
            "temperature": 0.8, "ignore_eos": True} | fields
    start = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    text, ttft, usage = "", None, {}
    for line in answer:
        if not line.startswith(b"data: {"):
            continue
        chunk = json.loads(line[6:])
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            if ttft is None:
                ttft = time.perf_counter() - start
            text += choice["delta"].get("content") or ""
    connection.close()
    return Turn(text, ttft, usage["prompt_tokens"], (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0),
                answer.headers["x-octavo-cache"])


def replay(url: str, asked: list[list[dict]], **fields) -> list[Turn]:
    return [ask(url, messages, **fields) for messages in asked]


def metrics(url: str) -> dict[str, float]:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return {line.split("{")[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line and not line.startswith("#")}


def computed_share(turns: list[Turn]) -> float:
    """Returns the computed share of the prompt tokens after the first turn."""
    later = turns[1:]
    return sum(t.prompt - t.cached for t in later) / sum(t.prompt for t in later)


def three_runs(octavo, model: Path, asked: list[list[dict]], folder: Path, *flags) -> dict[str, list[Turn]]:
    """Without a cache, with one, and from disk after a restart."""
    disk = ("--prefix-disk", folder, "--prefix-disk-size", "8GiB")
    runs = {}
    for name, more in (("cold", ("--no-enable-prefix-caching",)), ("cached", disk), ("restarted", disk)):
        with running_server.running(octavo, model, *flags, *more) as server:
            runs[name] = replay(server.url, asked)
            runs[name + "_metrics"] = metrics(server.url)
            runs[name + "_log"] = server.lines
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("octavo")
    parser.add_argument("--family", default="llama")
    parser.add_argument("--shape", default="medium")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--first", type=int, default=10000, help="words of the first prompt")
    parser.add_argument("--step", type=int, default=530, help="words added per turn")
    args = parser.parse_args()
    asked = conversation(args.turns, args.first, args.step)
    with tempfile.TemporaryDirectory() as folder:
        model = make_long_context(Path(folder) / "model", args.family, args.shape, dtype="bfloat16")
        runs = three_runs(args.octavo, model, asked, Path(folder) / "pages")
    cold, cached, restarted = (runs[name] for name in ("cold", "cached", "restarted"))
    print(json.dumps({
        "prompt_tokens": [t.prompt for t in cold],
        "texts_equal": [t.text for t in cold] == [t.text for t in cached] == [t.text for t in restarted],
        "computed_share": round(computed_share(cached), 4),
        "ttft_cold": [round(t.ttft, 3) for t in cold],
        "ttft_cached": [round(t.ttft, 3) for t in cached],
        "ttft_restarted": [round(t.ttft, 3) for t in restarted],
        "ttft_restarted_share": [round(r.ttft / c.ttft, 4) for r, c in zip(restarted, cold)],
        "ttft_restarted_share_of_all": round(sum(t.ttft for t in restarted) / sum(t.ttft for t in cold), 4),
        "headers": {name: [t.header for t in runs[name]] for name in ("cached", "restarted")},
        "disk": {name: value for name, value in runs["restarted_metrics"].items() if "prefix_disk" in name},
    }, indent=1))


if __name__ == "__main__":
    main()
