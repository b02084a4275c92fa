#!/usr/bin/env python3
"""Takes screenshots of the playground: light, dark, 390 px wide, and a comparison of two models. Needs playwright and Chromium.

Without a URL, takes them with the stub of tests/page and its prepared answers.

usage: page_shots.py OUTDIR [URL]   (CHROMIUM sets the browser's path; default: /usr/bin/chromium)"""

import os
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

QUESTIONS = ("A train leaves at 9:40 and travels 150 km at 100 km/h. When does it arrive?", "Can you write that as a Python function?")
EARLIER = "Why is the sky blue?"
STUB = Path(__file__).parents[1] / "tests" / "page"
WIDE, NARROW = (1280, 860), (390, 844)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run"]


def _ask(page: Page, question: str) -> None:
    page.locator("#prompt").fill(question)
    page.keyboard.press("Enter")
    page.locator(".turn:last-child .actions:visible").wait_for(timeout=120_000)


def _shoot(browser: Browser, url: str, out: Path, scheme: str, size: tuple[int, int]) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": size[0], "height": size[1]}, locale="en-GB")
    page = context.new_page()
    page.goto(url)
    page.locator("#model-length:not(:empty)").wait_for()
    _ask(page, EARLIER)
    page.locator("#new").evaluate("button => button.click()")  # it may be folded away
    for question in QUESTIONS:
        _ask(page, question)
    page.wait_for_timeout(2500)  # wait for a few metrics updates
    page.locator("#transcript").evaluate("view => { view.scrollTop = 0 }")
    page.screenshot(path=out)
    context.close()


def _shoot_comparison(browser: Browser, url: str, out: Path) -> None:
    page = browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]}, locale="en-GB")
    page.goto(url)
    page.locator("#compare-button").click()
    page.locator("#compare-prompt").fill(QUESTIONS[0])
    page.locator("#compare-send").click()
    for column in page.locator(".compare-column").all():
        column.locator(".figures > div").first.wait_for(timeout=120_000)
    page.screenshot(path=out)
    page.close()


def main(folder: Path, url: str, url_of_several: str | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=FLAGS)
        _shoot(browser, url, folder / "playground-light.png", "light", WIDE)
        _shoot(browser, url, folder / "playground-dark.png", "dark", WIDE)
        _shoot(browser, url, folder / "playground-narrow.png", "light", NARROW)
        if url_of_several:
            _shoot_comparison(browser, url_of_several, folder / "playground-compare.png")
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        main(Path(sys.argv[1]), sys.argv[2])
    elif len(sys.argv) == 2:
        sys.path.insert(0, str(STUB))
        import page_stub

        states = {"example/instruct-8b": "loaded", "example/small-1b": "loaded"}
        with page_stub.serve(model="example/instruct-8b", token_seconds=0.02) as one, page_stub.serve(
            states=states, token_seconds=0.02
        ) as several:
            main(Path(sys.argv[1]), one.url, several.url)
    else:
        sys.exit(__doc__)
