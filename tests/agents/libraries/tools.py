"""The tools of a small agent, in the current folder."""


def write_file(path: str, content: str) -> str:
    """Writes a file."""
    from pathlib import Path

    Path(path).write_text(content)
    return "written"


def edit_file(path: str, old: str, new: str) -> str:
    """Replaces a text in a file."""
    from pathlib import Path

    text = Path(path).read_text()
    Path(path).write_text(text.replace(old, new))
    return f"{text.count(old)} occurrences replaced"


def run_command(command: str) -> str:
    """Runs a shell command and returns its output."""
    import subprocess

    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr
