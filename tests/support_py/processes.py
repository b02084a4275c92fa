"""What Linux says about a running process."""

from pathlib import Path


def processor_seconds(pid: int) -> float:
    """How long all threads of the process have run."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def thread_seconds(pid: int, name: str) -> float:
    """How long the threads whose names begin so have run."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks if (task / "comm").read_text().startswith(name)) / 1e9
