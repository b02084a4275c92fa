"""tools/docs.sh builds the site, and fails on a broken link."""

import shutil
import subprocess
import sys
from pathlib import Path

from doc_pages import REPO


def test_the_site_builds_strictly(tmp_path):
    shutil.copytree(REPO / "docs", tmp_path / "docs")
    shutil.copy(REPO / "mkdocs.yml", tmp_path)
    (tmp_path / "tools").mkdir()
    for name in ("docs.sh", "docs_hooks.py"):
        shutil.copy(REPO / "tools" / name, tmp_path / "tools")
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    good = subprocess.run([tmp_path / "tools" / "docs.sh"], capture_output=True, text=True)
    assert good.returncode == 0, good.stderr
    assert (tmp_path / "build" / "site" / "quickstart.html").exists()
    assert "prefix-caching.html" in (tmp_path / "build" / "site" / "cache-misses.html").read_text(), "a renamed page redirects"
    with open(tmp_path / "docs" / "memory.md", "a") as page:
        page.write("\n[nowhere](no-such-page.md)\n")
    bad = subprocess.run([tmp_path / "tools" / "docs.sh"], capture_output=True, text=True)
    assert bad.returncode != 0 and "no-such-page.md" in bad.stderr
