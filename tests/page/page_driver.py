"""What the tests do with the page. Importing it skips the test module if playwright or Chromium is missing."""

import json
import os
import shlex
import shutil

import pytest

playwright_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("no Chromium here", allow_module_level=True)

expect = playwright_api.expect
SERVER_URL = os.environ.get("OCTAVO_PAGE_URL")
ANSWER_MS = 60_000  # a real model on a busy machine
stub_only = pytest.mark.skipif(SERVER_URL is not None, reason="needs the stub's answers")


def ask(page, text: str) -> None:
    page.locator("#prompt").fill(text)
    page.keyboard.press("Enter")


def answered(page):
    """Waits until the last turn's answer is complete and returns the turn."""
    turn = page.locator(".turn").last
    expect(turn.locator(".actions")).to_be_visible(timeout=ANSWER_MS)
    return turn


def answer_to(page, text: str):
    """Asks, waits, and returns the element of the answer."""
    ask(page, text)
    return answered(page).locator(".answer")


def figures(turn) -> dict[str, str]:
    pairs = turn.locator(".figures > div")
    return {pair.locator("dt").inner_text(): pair.locator("dd").inner_text() for pair in pairs.all()}


def curl(page) -> list[str]:
    """Returns the words of the curl command as a shell would parse them."""
    return shlex.split(page.locator("#curl").inner_text().replace("\\\n", " "))


def curl_body(page) -> dict:
    words = curl(page)
    return json.loads(words[words.index("-d") + 1])


def wait_for_model(page) -> None:
    expect(page.locator("#model-length")).to_contain_text("tokens")


def titles(page) -> list[str]:
    """Returns the titles in the list of conversations."""
    return page.locator("#conversations .open span").all_inner_texts()


def downloaded(page, button: str) -> tuple[str, str]:
    """Presses the button with this id and returns the name and the text of the file."""
    with page.expect_download() as caught:
        page.locator(f"#{button}").click()
    return caught.value.suggested_filename, caught.value.path().read_text()


def import_text(page, name: str, text: str) -> None:
    page.locator("#import-file").set_input_files({"name": name, "mimeType": "text/plain", "buffer": text.encode()})
    expect(page.locator("#import-note")).not_to_be_empty()
