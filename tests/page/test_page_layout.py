"""Keyboard, names for screen readers, colours, narrow screens, size."""

import re

import page_stub
import pytest
from page_driver import ANSWER_MS, answer_to, answered, ask, expect, stub_only, wait_for_model

LARGEST_PAGE = 300_000  # bytes, with its libraries


def test_everything_is_reached_by_keyboard(page):
    """Starts in the composer, which has the focus, and covers an answer, stopping, the mode switch and the settings."""
    expect(page.locator("#prompt")).to_be_focused()
    page.keyboard.type("slow")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("second line")
    expect(page.locator("#prompt")).to_have_value("slow\nsecond line")
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).not_to_be_empty(timeout=ANSWER_MS)
    page.keyboard.press("Escape")
    answered(page)
    expect(page.locator("#prompt")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#prompt-label")).to_have_text("Text to continue")
    expect(page.locator(".turn")).to_have_count(0)
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        name, ring = page.evaluate(
            "[document.activeElement.id || document.activeElement.textContent.trim(),"
            " getComputedStyle(document.activeElement).outlineStyle]"
        )
        assert ring != "none" or name.startswith("Octavo"), f"no visible focus on {name}"
        reached.add(name)
    assert {"send", "temperature", "seed", "curl", "copy-curl", "key-button", "transcript", "new", "import", "export-all"} <= reached
    assert any(name.startswith("slow second line") for name in reached), "the conversation in the list"


def test_nothing_lacks_a_name(page):
    answer_to(page, "markdown, and a table")
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, textarea, select')]"
        ".filter(e => !e.labels.length && !e.ariaLabel).map(e => e.id)"
    )
    assert nameless == []
    buttons = page.locator("button").evaluate_all(
        "all => all.filter(b => !/[a-z]/i.test(b.ariaLabel ?? b.textContent)).map(b => b.outerHTML)"
    )
    assert buttons == []
    for role, name in (("navigation", "Conversations"), ("region", "Conversation"), ("complementary", "Settings and live view")):
        expect(page.get_by_role(role, name=name, exact=True)).to_have_count(1)


def test_light_and_dark(open_page):
    colours = {}
    for scheme in ("light", "dark"):
        page = open_page(color_scheme=scheme)
        colours[scheme] = page.evaluate("(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))")
    brightness = {
        scheme: [sum(map(int, re.findall(r"\d+", colour))) for colour in pair] for scheme, pair in colours.items()
    }
    assert brightness["light"][0] > 650 and brightness["light"][1] < 150
    assert brightness["dark"][0] < 120 and brightness["dark"][1] > 600


def test_phone_reaches_conversations_by_a_button(open_page):
    page = open_page(viewport={"width": 390, "height": 844})
    wait_for_model(page)
    expect(page.locator("#sidebar")).to_be_hidden()
    answer_to(page, "first")
    page.get_by_role("button", name="Conversations", exact=True).click()
    expect(page.locator("#new")).to_be_focused()
    expect(page.locator("#sidebar-button")).to_have_attribute("aria-expanded", "true")
    page.locator("#new").click()
    expect(page.locator("#sidebar")).to_be_hidden()
    expect(page.locator(".turn")).to_have_count(0)
    page.locator("#sidebar-button").click()
    page.locator("#conversations .open").click()
    expect(page.locator("#sidebar")).to_be_hidden()
    expect(page.locator(".turn")).to_have_count(1)
    page.locator("#sidebar-button").click()
    page.keyboard.press("Escape")
    expect(page.locator("#sidebar")).to_be_hidden()
    expect(page.locator("#sidebar-button")).to_be_focused()


@pytest.mark.parametrize("width", [360, 390])
def test_phone_has_no_sideways_scroll(open_page, stub, width):
    stub.model = "an-organisation/a-model-with-a-very-long-name-Instruct-Q4_K_M"
    page = open_page(viewport={"width": width, "height": 640})
    wait_for_model(page)
    expect(page.locator("#temperature")).to_be_hidden()
    page.locator("#max_tokens").evaluate("input => { input.value = 16 }")
    answer_to(page, "code " + "x" * 200)
    answer_to(page, "markdown " + "x" * 200)
    page.locator("#panels > summary").click()
    for name in ("Settings", "Penalties and stop strings", "Request as curl"):
        page.get_by_text(name, exact=True).click()
    expect(page.locator("#temperature")).to_be_visible()
    for box in ("html", "main", "#transcript", "#panels"):
        wide, room = page.locator(box).evaluate("e => [e.scrollWidth, e.clientWidth]")
        assert wide <= room, f"{box} is {wide} px in {room}"
    tops = page.locator("#composer .bar button:visible").evaluate_all("all => all.map(b => b.getBoundingClientRect().top)")
    assert max(tops) - min(tops) < 4, "the buttons wrap"


def test_less_motion_on_request(open_page):
    page = open_page(reduced_motion="reduce")
    ask(page, "slow: count from one to a thousand in words.")
    expect(page.locator(".answer")).not_to_be_empty(timeout=ANSWER_MS)
    animation = page.locator(".answer > :last-child").evaluate("e => getComputedStyle(e, '::after').animationName")
    page.keyboard.press("Escape")
    assert animation == "none"


def test_page_is_small():
    files = [file for file in page_stub.PAGE.rglob("*") if file.suffix in page_stub.TYPES]
    assert len(files) > 20
    assert sum(file.stat().st_size for file in files) < LARGEST_PAGE


@stub_only
def test_vendored_files_are_those_in_use():
    """The table of languages and the files of the folder agree, and each library has its license."""
    vendor = page_stub.PAGE / "vendor"
    source = (page_stub.PAGE / "highlight.js").read_text()
    languages = re.findall(r"(\w+): \[", source[source.index("LANGUAGES = {") : source.index("};")])
    files = {file.name.removesuffix(".min.js") for file in (vendor / "highlight").glob("*.min.js")}
    assert files == {"core", *languages}
    versions = (vendor / "README.md").read_text()
    for folder, file in (("marked", "marked.esm.js"), ("highlight", "core.min.js")):
        assert (vendor / folder / "LICENSE").stat().st_size > 1000
        version = re.search(r"v(\d+\.\d+\.\d+)", (vendor / folder / file).read_text()[:300])[1]
        assert f"| {version} |" in versions


def test_nothing_is_inline():
    """The policy of the page forbids inline scripts, styles and handlers."""
    html = (page_stub.PAGE / "index.html").read_text()
    assert re.findall(r"<style|style=|\son\w+=|<script(?! type=\"module\" src=)", html) == []
