"""Python environments of their own under build/, for programs that pin other versions of packages than the tests."""

import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[2]


def python(name: str, packages: tuple[str, ...], check: list[str], flags: tuple[str, ...] = ()) -> Path | None:
    """The interpreter of build/NAME, in which `python CHECK...` must work; None if the environment cannot be made, for example without a
    network."""
    folder = REPO / "build" / name
    found, stamp = folder / "bin" / "python", folder / "stamp"
    wanted = "\n".join(packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return found
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, capture_output=True, timeout=120)
        subprocess.run([found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *flags, *packages], check=True,
                       capture_output=True, timeout=300)
        subprocess.run([found, *check], check=True, capture_output=True, timeout=60)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"tool_venv: {error} {getattr(error, 'stderr', b'')}", file=sys.stderr)
        return None
    stamp.write_text(wanted)
    return found
