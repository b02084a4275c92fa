"""A program that reads one JSON order per line and prints one JSON result per line: both ends."""

import json
import os
import subprocess
import sys


class JsonLines:
    def __init__(self, *command, **environment: str):
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
                                        env={**os.environ, **environment})

    def ask(self, **order) -> dict:
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the program ended with {self.process.wait(10)}"
        return json.loads(answer)

    def close(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(timeout=10) == 0


def answer_orders(answer) -> None:
    """The program's side: prints answer(order) for each order on standard input, or what it raised, for the test to report."""
    for line in sys.stdin:
        try:
            result = answer(json.loads(line))
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)
