#!/usr/bin/env python3
"""Replays a long coding session of two agents against octavo and llama.cpp's server, with the same model file: time to the first
token, computed share of the prompts, time of the session, and the same after a restart (octavo with --prefix-disk, llama.cpp with
its slots saved and restored).

The session comes from bench/agent_trace.py. Prints two tables in Markdown; --json also writes one line per turn. The servers run one
after the other with the same number of threads. llama.cpp is installed into build/peers-venv, as by bench/race/peers.py.

examples:
  bench/agent_replay.py MODEL.gguf --longest 30000                           32 turns, prompts of up to 30,000 tokens
  bench/agent_replay.py MODEL.gguf --only octavo --turns 6 --scale 0.1       a trial of some seconds
  bench/agent_replay.py MODEL.gguf --longest 7500 --context 8192             for a model with a short context
  bench/agent_replay.py MODEL.gguf --trace build/session.jsonl --json build/agent_replay.jsonl"""

import argparse
import shlex
import signal
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "race"))

from agentkit import play, report, session  # noqa: E402
from agentkit.servers import Failed, LlamaServer, Octavo, Options, Server  # noqa: E402
from peerkit.environment import REPO, Environment, usable_cores  # noqa: E402

NAMES = ("octavo", "llama.cpp")


def fitted(octavo: Octavo, args: argparse.Namespace) -> session.Trace:
    """The trace whose longest prompt has about --longest tokens of this model."""
    scale = args.scale
    octavo.start()
    try:
        for _ in range(4):
            trace = session.make(args.seed, args.turns, scale)
            longest = max(
                (messages for _, messages in trace.requests()), key=lambda said: sum(len(one["content"]) for one in said)
            )
            count = octavo.prompt_tokens(longest)
            if 0.95 * args.longest <= count <= args.longest:
                break
            scale *= 0.975 * args.longest / count
    finally:
        octavo.kill()
    print(f"scale {scale:.3f}: the longest prompt has {count:,} tokens", flush=True)
    return trace


def servers(args: argparse.Namespace, folder: Path) -> list[Server]:
    def options(name: str, flags: str) -> Options:
        return Options(args.model, args.context, args.threads, folder / name, shlex.split(flags))

    made: list[Server] = []
    if args.only != "llama.cpp":
        made.append(Octavo(args.octavo, options("octavo", args.octavo_flags)))
    if args.only != "octavo":
        made.append(LlamaServer(args.llama_server or installed_llama(), options("llama", args.llama_flags)))
    return made


def installed_llama() -> Path:
    environment = Environment(REPO / "build/peers-venv", REPO / "build/peers-models")
    environment.install()
    return environment.llama_bin / "llama-server"


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("model", type=Path, help="a .gguf file, or any model of octavo's with --only octavo")
    add("--only", choices=NAMES, help="run only one of the servers")
    add("--turns", type=int, default=32, help="turns before the restart; default: 32")
    add("--scale", type=float, default=1, help="factor of all lengths; default: 1")
    add("--longest", type=int, metavar="TOKENS", help="choose the scale so that the longest prompt has about this many tokens")
    add("--seed", type=int, default=1)
    add("--trace", type=Path, help="replay this file instead of making a session")
    add("--context", type=int, default=40960, help="context length in tokens; default: 40960")
    add("--threads", type=int, default=usable_cores(), help="default: number of usable cores")
    add("--json", type=Path, metavar="FILE", help="write one line per turn, and one per server with the times of its restart")
    add("--octavo", type=Path, default=REPO / "build/release/src/cli/octavo", help="path of the octavo program")
    add("--llama-server", type=Path, metavar="FILE", help="path of llama-server; default: the installed one")
    add("--octavo-flags", default="", help="further flags of octavo serve, as one string")
    add("--llama-flags", default="", help="further flags of llama-server, as one string")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is ended too
    with tempfile.TemporaryDirectory(prefix="agent-replay-") as place:
        folder = Path(place)
        try:
            if args.trace:
                trace = session.Trace.read(args.trace)
            elif args.longest:
                trace = fitted(Octavo(args.octavo, Options(args.model, args.context, args.threads, folder / "fit")), args)
            else:
                trace = session.make(args.seed, args.turns, args.scale)
            sessions = [play.play(server, trace) for server in servers(args, folder)]
        except (Failed, ValueError) as error:
            print(f"agent_replay: {error}", file=sys.stderr)
            return 1
    if args.json:
        lines = [played.line() for done in sessions for played in done.turns] + [done.line() for done in sessions]
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text("\n".join(lines) + "\n")
    print(f"\n{report.summary(sessions)}\n\n{report.turns(sessions)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
