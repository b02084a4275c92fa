#!/usr/bin/env python3
"""Writes the trace of one long coding session of two agents as JSON lines, for bench/agent_replay.py --trace. The same arguments
give the same file.

examples:
  bench/agent_trace.py build/session.jsonl                        32 turns, prompts of up to about 100,000 characters
  bench/agent_trace.py build/short.jsonl --turns 6 --scale 0.1"""

import argparse
from pathlib import Path

from agentkit import session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--turns", type=int, default=32, help="turns before the restart; default: 32")
    parser.add_argument("--scale", type=float, default=1, help="factor of all lengths; default: 1")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    trace = session.make(args.seed, args.turns, args.scale)
    trace.write(args.out)
    for turn, messages in trace.requests():
        size = sum(len(message["content"]) for message in messages)
        print(
            f"{turn.number:3} {turn.agent:9} {turn.event:8} {len(messages):3} messages, {size:7,} characters, keeps {turn.keep}"
        )


if __name__ == "__main__":
    main()
