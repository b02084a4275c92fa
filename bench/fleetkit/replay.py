"""Replays one trace with Dynamo's mocker in virtual time and prints its report as JSON. Runs in Dynamo's environment (simulation.py).

usage: replay.py < {"trace": PATH, "block": TOKENS, "engine": {...}, "replicas": N, "policy": "round_robin" or "kv_router"}"""

import json
import sys

from dynamo._core import run_mocker_trace_replay

job = json.load(sys.stdin)
result = run_mocker_trace_replay([job["trace"]], extra_engine_args={"engine": job["engine"]}, num_workers=job["replicas"],
                                 router_mode=job["policy"], trace_block_size=job["block"], capture_planner_details=False)
json.dump(result.summary, sys.stdout)
