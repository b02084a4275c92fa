"""Simulates replicas behind a router: Dynamo's mocker with measured step costs (`octavo bench model --costs`)."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from fleetkit.traces import BLOCK

REPO = Path(__file__).parents[2]
sys.path.insert(0, str(REPO / "tests" / "support_py"))

import dynamo_venv  # noqa: E402

POLICIES = {"round_robin": "round robin", "kv_router": "KV router"}


@dataclass(frozen=True)
class Replica:
    """An engine's limits; the defaults are those of `octavo serve`, except for the number of blocks."""

    blocks: int
    block_size: int = 32
    max_num_seqs: int = 64
    max_num_batched_tokens: int = 512


def simulate(costs: Path, trace: Path, policy: str, replicas: int, replica: Replica) -> dict:
    """The figures of a whole trace. Raises RuntimeError if the mocker cannot be installed or refuses the costs or the trace."""
    if (python := dynamo_venv.python()) is None:
        raise RuntimeError("Dynamo's runtime cannot be installed: see the error above")
    engine = {"block_size": replica.block_size, "num_gpu_blocks": replica.blocks, "max_num_seqs": replica.max_num_seqs,
              "max_num_batched_tokens": replica.max_num_batched_tokens,
              "timing_model": {"type": "external", "provider": "dynamo_profile", "config": {"path": str(costs.resolve())}}}
    job = {"trace": str(trace), "block": BLOCK, "engine": engine, "replicas": replicas, "policy": policy}
    done = subprocess.run([python, Path(__file__).with_name("replay.py")], input=json.dumps(job), capture_output=True, text=True,
                          env=os.environ | {"DYN_LOG": "error", "NO_COLOR": "1"})
    if done.returncode != 0:
        raise RuntimeError(f"Dynamo's mocker failed: {done.stderr.strip().splitlines()[-1]}")
    report = json.loads(done.stdout)
    if report["completed_requests"] != report["num_requests"]:
        raise RuntimeError(f"only {report['completed_requests']} of {report['num_requests']} requests completed: more --blocks are needed")
    return {"requests": report["completed_requests"],
            "seconds": report["duration_ms"] / 1e3,
            "requests_per_second": report["request_throughput_rps"],
            "output_tokens_per_second": report["output_throughput_tok_s"],
            "hit_rate": report["prefix_cache_reused_ratio"],
            "ttft_p50": report["median_ttft_ms"] / 1e3,
            "ttft_p99": report["p99_ttft_ms"] / 1e3}
