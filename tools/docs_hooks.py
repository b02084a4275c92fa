"""MkDocs hook: resolves links from pages to files outside docs/.

If OCTAVO_REPO_URL is set, a link to a file outside docs/ points into that repository; otherwise it becomes the file's name."""

import os
import re
from pathlib import PurePosixPath

OUTSIDE = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)\s]+)\)")


def on_config(config):
    config.repo_url = os.environ.get("OCTAVO_REPO_URL") or None
    return config


def on_page_markdown(markdown, page, config, files):
    folder = PurePosixPath("docs", page.file.src_uri).parent

    def replace(found):
        parts: list[str] = list(folder.parts)
        for part in found[2].split("/"):
            parts = parts[:-1] if part == ".." else [*parts, part]
        if parts[:1] == ["docs"]:
            return found[0]
        path = "/".join(parts)
        base = os.environ.get("OCTAVO_REPO_URL", "").rstrip("/")
        return f"[{found[1]}]({base}/blob/main/{path})" if base else f"{found[1]} (`{path}`)"

    return OUTSIDE.sub(replace, markdown)
