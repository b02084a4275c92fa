"""What the parts reached, when and on which commit: a JSON file with one object per part, which is committed."""

import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
FILE = REPO / "tests" / "battery" / "record.json"
# A commit of documents and results only does not ask for new results.
TESTED = [".", ":(exclude)docs", ":(exclude)*.md", ":(exclude)tests/battery/record.json"]


@dataclass
class Entry:
    commit: str
    date: str
    count: int  # reached, on this commit
    seconds: float  # that the pieces of this count took
    result: str  # passed: all of it; partial: this count, without a failure; failed: the piece after this count

    @property
    def per_hour(self) -> float | None:
        return self.count / self.seconds * 3600 if self.count and self.seconds else None


class Record:
    def __init__(self, file: Path = FILE):
        self.file = file
        entries = json.loads(file.read_text()) if file.exists() else {}
        self.entries = {name: Entry(**values) for name, values in entries.items()}

    def get(self, name: str) -> Entry | None:
        return self.entries.get(name)

    def put(self, name: str, entry: Entry) -> None:
        """Saves at once, so that a run that is cut off loses no piece."""
        self.entries[name] = entry
        self.file.parent.mkdir(parents=True, exist_ok=True)
        part = self.file.with_name(self.file.name + ".part")
        part.write_text(json.dumps({name: asdict(self.entries[name]) for name in sorted(self.entries)}, indent=1) + "\n")
        part.replace(self.file)


def commit(repo: Path = REPO) -> str:
    """The last commit that changed what is tested; "+" if there are changes that are not committed."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments, "--", *TESTED], cwd=repo, capture_output=True, text=True, check=True
        ).stdout.strip()

    return git("log", "-1", "--abbrev=8", "--format=%h") + ("+" if git("status", "--porcelain") else "")
