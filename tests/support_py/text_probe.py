"""The text_probe program: the text layer, one JSON request and one response per line."""

import json
import subprocess
from pathlib import Path


class TextProbe:
    def __init__(self, program: Path):
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def encode(self, data: bytes, add_special: bool):
        return self.ask(op="encode", bytes=data.hex(), add_special=add_special)["ids"]

    def decode(self, ids, skip_special: bool):
        return self.ask(op="decode", ids=ids, skip_special=skip_special)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=10) == 0
