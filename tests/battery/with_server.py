#!/usr/bin/env python3
"""Runs a command while `octavo serve` runs on a free port. {url} in the command becomes the server's URL. Exits with the status of the
command.

    tests/battery/with_server.py OCTAVO MODEL [flags of serve] -- COMMAND [{url}]..."""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
import running_server  # noqa: E402


def main(arguments: list[str]) -> int:
    if "--" not in arguments or arguments.index("--") < 2:
        print(__doc__.splitlines()[-1].strip(), file=sys.stderr)
        return 2
    at = arguments.index("--")
    octavo, model, *flags = arguments[:at]
    with running_server.running(octavo, model, *flags) as server:
        return subprocess.run([part.replace("{url}", server.url) for part in arguments[at + 1 :]]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
