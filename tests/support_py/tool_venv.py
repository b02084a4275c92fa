"""Python environments in build/ for programs that pin other versions of packages than the tests."""

import fcntl
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[2]


def python(name: str, packages: tuple[str, ...], check: list[str], with_dependencies: bool = False) -> Path | None:
    """The interpreter of the environment build/NAME with exactly these packages (or what they need as well), made if it is missing or has others; `check` are the
    interpreter's arguments that must succeed. None if it cannot be made, for example without a network."""
    venv = REPO / "build" / name
    found, stamp = venv / "bin" / "python", venv / "stamp"
    venv.parent.mkdir(exist_ok=True)
    with venv.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests may run at the same time
        if stamp.exists() and stamp.read_text() == "\n".join(packages):
            return found
        try:
            subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True, capture_output=True, timeout=120)
            install = [found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*install, *([] if with_dependencies else ["--no-deps"]), *packages], check=True, capture_output=True,
                           timeout=300)
            subprocess.run([found, *check], check=True, capture_output=True, timeout=60)
        except (subprocess.SubprocessError, OSError) as error:
            print(f"tool_venv: {name}: {error} {getattr(error, 'stderr', b'')}", file=sys.stderr)
            return None
        stamp.write_text("\n".join(packages))
        return found
