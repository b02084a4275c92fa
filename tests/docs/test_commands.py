"""Executes every bash, console, Python and JavaScript block in README and docs/, unless a comment before it gives a reason not to
(doc_pages.py), and parses every JSON, YAML and TOML block. Prints the counts at the end."""

import importlib.util
import json
import shutil
import tomllib

import pytest
import yaml
from doc_pages import CHECKED, EXECUTED, REPO, BadPage, pages, parse
from sandbox import Sandbox

PAGES = [page for page in pages() if any(block.language in EXECUTED + CHECKED for block in page.blocks)]


@pytest.fixture(scope="module")
def sandbox(octavo, smollm2_gguf, tmp_path_factory):
    made = Sandbox(tmp_path_factory.mktemp("docs"), octavo.resolve(), smollm2_gguf)
    yield made
    made.close()


@pytest.fixture(scope="module")
def has():
    """has(thing) returns whether a requirement is installed: `python MODULE`, `node PACKAGE` or `program NAME`."""

    def answer(thing: str) -> bool:
        kind, _, name = thing.partition(" ")
        if kind == "python":
            return importlib.util.find_spec(name) is not None
        if kind == "node":
            return (REPO / "build" / "clients-node" / "node_modules" / name).is_dir()
        if kind == "program":
            return shutil.which(name) is not None
        raise BadPage(f"run: if ({thing}): it is none of python MODULE, node PACKAGE, program NAME")

    return answer


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run(page, sandbox, has, counts):
    sandbox.new_page()
    keep = serve_for(page, sandbox)
    try:
        for block in page.blocks:
            if block.file:
                sandbox.write(block)
            if block.language in CHECKED:
                check_syntax(block)
                counts[f"parsed as {block.language}"] += 1
            elif block.language in EXECUTED:
                run_block(block, sandbox, has, counts)
    finally:
        if not keep or any(block.mode == "server" for block in page.blocks):
            sandbox.stop_server()
            sandbox.shared = None


def serve_for(page, sandbox) -> bool:
    """Starts the page's server, unless the previous page left one running with the same flags."""
    if page.server is None:
        return getattr(sandbox, "shared", None) is not None
    if getattr(sandbox, "shared", None) != page.server:
        sandbox.serve(f"octavo serve MODEL {page.server}")
        sandbox.shared = page.server
    return True


def run_block(block, sandbox, has, counts) -> None:
    if block.mode == "no":
        counts[f"not executed: {block.detail}"] += 1
        return
    if block.mode == "if" and not has(block.detail):
        counts[f"not executed: this machine or build has no {block.detail}"] += 1
        return
    if block.mode == "server":
        sandbox.serve(block.text)
        sandbox.shared = None
    else:
        done = sandbox.run(block)
        assert done.ok == (block.mode != "fails"), f"{block.name}\n{block.text}\n{done.output[-3000:]}"
    counts[f"executed: {block.language}"] += 1


def check_syntax(block) -> None:
    try:
        {"json": json.loads, "toml": tomllib.loads, "yaml": lambda text: list(yaml.safe_load_all(text))}[block.language](block.text)
    except (ValueError, yaml.YAMLError) as error:
        pytest.fail(f"{block.name}: {error}")


def test_no_command_hides_in_an_indented_block():
    for page in pages():
        for number, line in enumerate(page.text.split("\n"), 1):
            assert not line.startswith(("    octavo ", "    curl ", "    $ ", "    pip ")) or within_fence(page, number), \
                f"{page.name}:{number}: a command belongs into a fenced block, where it is run"


def within_fence(page, number: int) -> bool:
    return any(block.line < number <= block.line + block.text.count("\n") for block in page.blocks)


@pytest.mark.parametrize("text, message", [
    ("<!-- run: no (because) -->\n```bash\ntrue\n```\n", "is not in REASONS"),
    ("<!-- run: maybe -->\n```bash\ntrue\n```\n", "none of"),
    ("<!-- run: server -->\ntext\n", "without a block"),
    ("```bash\ntrue\n", "without an end"),
    ("```\ntrue\n```\n", "says its language"),
])
def test_what_steers_the_runner_is_checked(text, message):
    with pytest.raises(BadPage, match=message):
        parse(REPO / "docs" / "x.md", text)


def test_a_block_that_fails_is_seen(sandbox):
    block = parse(REPO / "docs" / "x.md", "```bash\nfalse\ntrue\n```\n").blocks[0]
    assert not sandbox.run(block).ok
    [good, bad] = parse(REPO / "docs" / "x.md", "```console\n$ echo a b\na ...\n```\n```console\n$ echo a\nb\n```\n").blocks
    assert sandbox.run(good).ok and not sandbox.run(bad).ok
