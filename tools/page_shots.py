#!/usr/bin/env python3
"""Takes screenshots of a running server's playground: light, dark and 360 px wide. Needs playwright and Chromium.

usage: page_shots.py URL OUTDIR   (CHROMIUM sets the browser's path; default: /usr/bin/chromium)"""

import os
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

QUESTIONS = ("What is the capital of France?", "Why is the sky blue?")


# Sets a field of the settings panel, even if the panel is collapsed.
SET = "([id, value]) => { const field = document.getElementById(id); field.value = value;" \
      " field.dispatchEvent(new Event('input', { bubbles: true })); field.dispatchEvent(new Event('change', { bubbles: true })); }"


def _ask(page: Page, question: str) -> None:
    page.locator("#prompt").fill(question)
    page.keyboard.press("Enter")
    page.locator(".turn:last-child .actions:visible").wait_for(timeout=120_000)


def _shoot(browser, url: str, out: Path, scheme: str, width: int, height: int) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height}, device_scale_factor=1)
    page = context.new_page()
    page.goto(url)
    page.locator("#model-length:not(:empty)").wait_for()
    page.screenshot(path=out.with_stem(out.stem + "-empty"))
    page.evaluate(SET, ["temperature", "0"])
    page.evaluate(SET, ["max_tokens", "200"])
    for question in QUESTIONS:
        _ask(page, question)
    page.wait_for_timeout(2500)  # wait for a few metrics updates
    page.screenshot(path=out)
    if width < 960:
        page.locator("#panels > summary").click()
        page.screenshot(path=out.with_stem(out.stem + "-panels"))
    context.close()


def main(url: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        program = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        _shoot(browser, url, folder / "playground-light.png", "light", 1200, 740)
        _shoot(browser, url, folder / "playground-dark.png", "dark", 1200, 740)
        _shoot(browser, url, folder / "playground-narrow.png", "light", 360, 740)
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]))
