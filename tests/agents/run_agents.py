#!/usr/bin/env python3
"""Installs coding agents and client libraries, lets each one work against the real server with a scripted engine, and prints a
table. Each agent must create a file, change it, run it, and read what it prints.

Agents start with an empty environment and home, in a network namespace that has only the loopback interface (root is required for
this; --online runs them without it). The table says what each one was seen to do, not what its documentation says.

usage: run_agents.py PREFIX [NAME...] [--skip-install] [--record FOLDER] [--server fake_server] [--online]
"""

import argparse
import contextlib
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
REPO = HERE.parents[1]
sys.path.insert(0, str(REPO / "tests" / "support_py"))

import fixtures  # noqa: E402
import installing  # noqa: E402
from agent import CHANGED, KEY, PRINTED, Agent, Place, script_of  # noqa: E402
from catalogue import AGENTS  # noqa: E402
from recorder import Exchange, Recorder  # noqa: E402
from server_kit import Server  # noqa: E402

TEMPLATE = REPO / "tests" / "e2e" / "templates" / "qwen3_style.jinja"
TIMEOUT = 240
LIMITS = {"max_model_len": 1_000_000, "pages": 150_000, "max_num_batched_tokens": 8192}


@dataclass
class Result:
    agent: Agent
    version: str = "-"
    problems: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)

    def row(self) -> str:
        routes = {}
        for exchange in self.exchanges:
            key = f"`{exchange.method} {exchange.route}`"
            routes[key] = routes.get(key, 0) + 1
        listed = ", ".join(f"{route} {count}" for route, count in routes.items())
        ignored = sorted(
            {
                name
                for exchange in self.exchanges
                for name in exchange.answer_headers.get("x-octavo-ignored", "").split(", ")
                if name
            }
        )
        done = "created, changed and ran the file, and read its output" if self.agent.works else "listed models and chatted"
        said = "; ".join(self.problems) or done
        return f"| {self.agent.title} | `{self.agent.packages[0]}` {self.version} | {said} | {listed} | {', '.join(ignored) or 'none'} |"


@contextlib.contextmanager
def killed_at_the_end(process: subprocess.Popen):
    """Kills the process's group, which may outlive the process."""
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_command(command: list, place: Place, environment: dict[str, str]) -> tuple[int | None, str]:
    """The exit status (None: not in time) and the output."""
    clean = {"HOME": str(place.home), "PATH": os.defpath, "TERM": "dumb", "LANG": "C.UTF-8", "TMPDIR": str(place.home / "tmp")}
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=place.work,
        env=clean | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    with killed_at_the_end(process):
        try:
            output, _ = process.communicate(timeout=TIMEOUT)
            return process.returncode, output.decode(errors="replace")
        except subprocess.TimeoutExpired:
            return None, f"not finished after {TIMEOUT} s"


def place_in(scratch: Path, agent: Agent, prefix: Path) -> Place:
    place = Place(scratch / "home", scratch / "work", "", installing.program_of(agent, prefix))
    place.work.mkdir()
    (place.home / "tmp").mkdir(parents=True)
    return place


def run(agent: Agent, prefix: Path, server_program: Path | None, record: Path | None) -> Result:
    result = Result(agent, installing.version_of(agent, prefix))
    with tempfile.TemporaryDirectory(prefix="agent-") as folder:
        place = place_in(Path(folder), agent, prefix)
        script = Path(folder) / "script.json"
        script.write_text(json.dumps(script_of(agent, place)))
        log = Path(folder) / "server.log"
        with (
            log.open("w") as stderr,
            Server.start(server_program, stderr=stderr, script=script, chat_template=TEMPLATE, api_key=KEY, **LIMITS) as server,
            Recorder(server.port) as recorder,
        ):
            place.url = f"http://127.0.0.1:{recorder.port}"
            launch = agent.launch(place)
            for command in launch.before:
                run_command(command, place, launch.environment)
            status, output = run_command(launch.command, place, launch.environment)
            result.exchanges = list(recorder.exchanges)
        check(result, place, status, output, log.read_text())
        if record and result.exchanges:
            date = datetime.date.today().isoformat()
            fixtures.write(
                record / f"{agent.name}.json", fixtures.fixture_of(agent, result.version, date, result.exchanges, place)
            )
    return result


def check(result: Result, place: Place, status: int | None, output: str, log: str) -> None:
    problems = result.problems
    if status != 0:
        problems.append(f"exit status {status}: {' '.join(output.split())[-300:]}")
    if result.agent.works:
        file = place.work / "greeting.py"
        text = file.read_text() if file.exists() else None
        if text is None or text.strip() != CHANGED.strip():
            problems.append(f"the file is {text!r}")
        last = "" if result.agent.name == "aider" else PRINTED
        if not any(last.encode() in exchange.body for exchange in result.exchanges):
            problems.append("no request has the output of the program")
    for exchange in result.exchanges:
        if exchange.status != 200:
            problems.append(
                f"{exchange.method} {exchange.route}: {exchange.status} {exchange.answer[:200].decode(errors='replace')}"
            )
    if "the grammar forbids" in log:
        problems.append("the grammar forbids a token of the script")


def without_network(arguments: list[str]) -> None:
    """Runs this program again in a namespace that has only the loopback interface. Its processes end with it, also those that leave
    their group."""
    inner = 'ip link set lo up && exec "$@"'
    again = [sys.executable, __file__, *arguments, "--online", "--skip-install"]
    os.execvp("unshare", ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", inner, "sh", *again])


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    # Installers run in folders of their own.
    parser.add_argument("prefix", type=lambda path: Path(path).resolve(), help="where agents are installed")
    parser.add_argument("names", nargs="*", help="all, if none is given: " + ", ".join(agent.name for agent in AGENTS))
    parser.add_argument("--skip-install", action="store_true")
    parser.add_argument("--record", type=Path, help="write fixtures to this folder")
    parser.add_argument("--server", type=Path, help="default: fake_server of the release build")
    parser.add_argument("--online", action="store_true", help="do not cut off the network")
    return parser.parse_args(arguments)


def main() -> int:
    options = parse(sys.argv[1:])
    chosen = [agent for agent in AGENTS if not options.names or agent.name in options.names]
    if not options.skip_install:
        for agent in chosen:
            try:
                installing.install(agent, options.prefix)
            except installing.InstallError as error:
                print(f"{agent.title} cannot be installed: {error}", file=sys.stderr)
    if not options.online:
        without_network(sys.argv[1:])
    print("| agent | version | result | requests | ignored fields |\n|---|---|---|---|---|", flush=True)
    failed = 0
    for agent in chosen:
        if installing.version_of(agent, options.prefix) is None:
            result = Result(agent, problems=["not installed"])
        else:
            result = run(agent, options.prefix, options.server, options.record)
        failed += bool(result.problems)
        print(result.row(), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
