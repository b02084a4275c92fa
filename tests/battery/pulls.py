#!/usr/bin/env python3
"""Downloads from a faulty hub, kills each download at random times, and resumes it until it is complete.

    tests/battery/pulls.py [--count 100] [--seed 1] [--octavo build/release/src/cli/octavo]

Every pull has a fresh cache and its own random faults. While it runs, the visible files in the cache are checked repeatedly.
At the end, every file must match its hash, and at most one chunk per kill may have been downloaded twice, counted from the
bytes that the hub sent. Prints one JSON line."""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REPO = Path(__file__).parents[2]
sys.path.insert(0, str(REPO / "tests" / "hub"))
import hub_kit  # noqa: E402
from stub_hub import FAULTS, Settings, StubHub  # noqa: E402

CHUNK = 512 << 10
NAME = "org/model"
BIG = "model-Q8_0.gguf"


def one_pull(octavo: Path, folder: Path, served: Path, seed: int) -> dict:
    rng = random.Random(seed)
    faults = tuple(rng.sample(FAULTS, rng.randint(1, len(FAULTS))))
    settings = Settings(seed=seed, faults=faults, rate=rng.uniform(0.1, 0.5), bytes_per_second=rng.choice((3e5, 1e6)))
    if rng.random() < 0.1:
        settings.wrong_content.add(f"{NAME}/{BIG}")
    wrong_once = bool(settings.wrong_content)
    home = folder / f"home-{seed}"
    kills = 0
    with StubHub(served, settings) as stub:
        env = hub_kit.environment(home, stub, OCTAVO_HUB_CHUNK_BYTES=CHUNK, HF_HUB_DOWNLOAD_TIMEOUT=5)
        for _ in range(60):
            process = subprocess.Popen([octavo, "pull", NAME], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True)
            deadline = time.monotonic() + (rng.uniform(0.05, 0.6) if kills < 5 else 60)
            while process.poll() is None and time.monotonic() < deadline:
                hub_kit.check_visible(home, NAME)
                time.sleep(0.005)
            if process.poll() is None:
                process.send_signal(rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT)))
                kills += 1
            out, err = process.communicate(timeout=60)
            hub_kit.check_visible(home, NAME)
            if process.returncode == 0:
                break
            # A pull fails if the hub fails too often; the next one resumes it.
            assert process.returncode in (-signal.SIGKILL, -signal.SIGINT, 130, 1), (seed, process.returncode, err)
        else:
            raise AssertionError(f"seed {seed}: never done; last: {err}")
        path = Path(out.strip())
        assert path.read_bytes() == (served / NAME / BIG).read_bytes(), f"seed {seed}: wrong bytes"
        assert hub_kit.check_visible(home, NAME) == 1
        left = [blob.name for blob in (hub_kit.repo_folder(home, NAME) / "blobs").iterdir() if "." in blob.name]
        assert not left, f"seed {seed}: left behind {left}"
        size = path.stat().st_size
        extra = stub.bytes_sent(f"{NAME}/{BIG}") - size
        allowed = kills * CHUNK + (size if wrong_once else 0) + useless(stub, size)
        assert extra <= allowed, f"seed {seed}: {extra} bytes fetched again with {kills} kills (faults {faults})"
        return {"kills": kills, "again": 0 if wrong_once else max(0, extra - useless(stub, size)),
                "answers": len(stub.sent), "wrong_once": wrong_once}


def useless(stub: StubHub, size: int) -> int:
    """Bytes sent with a wrong Content-Range, which must not be used."""
    return sum(min(sent.count, size) for sent in stub.sent if sent.fault == "wrong_range")


def run(octavo: Path, count: int, seed: int = 1, size: int = 3_000_000) -> dict:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="octavo-pulls-") as folder:
        served = Path(folder) / "served"
        hub_kit.write_repo(served, NAME, {BIG: size + 12345, "README.md": 500})
        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda number: one_pull(octavo, Path(folder), served, seed + number), range(count)))
    kills = sum(one["kills"] for one in done)
    again = sum(one["again"] for one in done)
    return {"pulls": count, "wrong_files": 0, "half_written_seen": 0, "kills": kills, "chunk_bytes": CHUNK,
            "fetched_again_per_kill": round(again / max(kills, 1)), "wrong_once": sum(one["wrong_once"] for one in done),
            "answers": sum(one["answers"] for one in done), "seconds": round(time.monotonic() - began, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--octavo", type=Path, default=REPO / "build" / "release" / "src" / "cli" / "octavo")
    flags = parser.parse_args()
    print(json.dumps(run(flags.octavo, flags.count, flags.seed)))


if __name__ == "__main__":
    main()
