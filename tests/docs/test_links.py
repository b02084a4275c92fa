"""Checks that every link in README and docs/ to a file, folder or heading in the repository resolves. External links are listed
(pytest -s) but not fetched."""

import re
from urllib.parse import unquote

import pytest
import yaml
from doc_pages import REPO, anchors, links, pages

PAGES = {page.path: page for page in pages()}


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: page.name)
def test_links_resolve(page):
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, fragment = unquote(link).partition("#")
        target = (page.path.parent / name).resolve() if name else page.path
        assert target.exists() and target.is_relative_to(REPO), f"{page.name}: {link} leads nowhere"
        if fragment:
            assert fragment in anchors(target.read_text()), f"{page.name}: {link}: no such heading"


def test_outside_links_are_listed():
    found = sorted({link for page in PAGES.values() for link in links(page) if re.match(r"[a-z]+:", link)})
    print("\n".join(found))
    assert all(link.startswith(("https://", "http://127.0.0.1", "mailto:")) for link in found)


def test_every_page_is_in_the_navigation():
    config = yaml.safe_load((REPO / "mkdocs.yml").read_text())

    def leaves(node):
        if isinstance(node, str):
            return [node]
        return [leaf for part in (node.values() if isinstance(node, dict) else node) for leaf in leaves(part)]

    listed = leaves(config["nav"])
    there = {str(path.relative_to(REPO / "docs")) for path in PAGES if path.is_relative_to(REPO / "docs")}
    assert len(listed) == len(set(listed)) and set(listed) == there
