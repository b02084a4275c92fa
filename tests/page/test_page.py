"""Tests the playground in a real browser. Needs playwright and Chromium, otherwise it is skipped.

OCTAVO_PAGE_URL sets a running server to test; otherwise a stub is started. Some cases run only with the stub.

    python3 -m venv build/page-venv && build/page-venv/bin/pip install playwright pytest
    build/page-venv/bin/python -m pytest tests/page"""

import json
import os
import re
import shlex
import shutil
from urllib.parse import urlsplit

import pytest

playwright_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("no Chromium here", allow_module_level=True)

import page_stub  # noqa: E402

expect = playwright_api.expect
SERVER_URL = os.environ.get("OCTAVO_PAGE_URL")
ANSWER_MS = 60_000  # a real model on a busy machine
stub_only = pytest.mark.skipif(SERVER_URL is not None, reason="needs the stub's answers")


@pytest.fixture(scope="module")
def browser():
    with playwright_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def stub():
    """A test may change the stub's fields before it opens the page."""
    with page_stub.serve() as running:
        yield running


@pytest.fixture
def url(stub) -> str:
    return SERVER_URL or stub.url


@pytest.fixture
def open_page(browser, url):
    """open_page(**context options) opens the playground; afterwards, asserts that the browser reported no errors."""
    contexts, complaints = [], []

    def watch_console(message) -> None:
        # The browser logs refused requests, which some tests provoke.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            complaints.append(message.text)

    def watch_requests(request) -> None:
        if urlsplit(request.url).netloc != urlsplit(url).netloc:
            complaints.append(f"a request to {request.url}")

    def open_it(**options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", watch_console)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", watch_requests)
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation', e => console.error('CSP: ' + e.violatedDirective))"
        )
        page.goto(url)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def page(open_page):
    opened = open_page()
    expect(opened.locator("#model-length")).to_contain_text("tokens")
    return opened


def ask(page, text: str) -> None:
    page.locator("#prompt").fill(text)
    page.keyboard.press("Enter")


def answered(page):
    """Waits until the last turn's answer is complete and returns the turn."""
    turn = page.locator(".turn:visible").last
    expect(turn.locator(".actions")).to_be_visible(timeout=ANSWER_MS)
    return turn


def figures(turn) -> dict[str, str]:
    pairs = turn.locator(".figures > div")
    return {pair.locator("dt").inner_text(): pair.locator("dd").inner_text() for pair in pairs.all()}


def curl(page) -> list[str]:
    """Returns the words of the curl command as a shell would parse them."""
    return shlex.split(page.locator("#curl").inner_text().replace("\\\n", " "))


def curl_body(page) -> dict:
    words = curl(page)
    return json.loads(words[words.index("-d") + 1])


def test_answer_streams_with_its_figures(page):
    ask(page, "Say hello in one short sentence.")
    turn = answered(page)
    assert turn.locator(".answer").inner_text().strip() != ""
    shown = figures(turn)
    assert list(shown) == ["first token", "tokens/s", "in", "cached", "out", "finish"]
    assert re.fullmatch(r"\d+ ms|\d+\.\d\d s", shown["first token"])
    assert int(shown["in"]) > 0 and int(shown["out"]) > 0
    assert shown["finish"] in ("stop", "length")
    expect(page.locator("#status")).to_have_text(turn.locator(".answer").inner_text().strip(), use_inner_text=True)


@stub_only
def test_split_bytes_are_put_together(page):
    ask(page, "naïve question")
    turn = answered(page)
    assert turn.locator(".answer").inner_text() == page_stub.PLAIN.format("naïve question")
    assert (figures(turn)["in"], figures(turn)["cached"], figures(turn)["finish"]) == ("24", "16", "stop")


def test_stop_ends_the_answer_and_keeps_what_came(page, stub):
    page.locator("#max_tokens").fill("4000")
    ask(page, "slow: count from one to a thousand in words.")
    expect(page.locator(".answer")).not_to_be_empty(timeout=ANSWER_MS)
    page.locator("#stop").click()
    turn = answered(page)
    assert figures(turn)["finish"] == "stopped"
    kept = turn.locator(".answer").inner_text()
    assert kept.strip() != ""
    if SERVER_URL is None:
        page.wait_for_timeout(300)
        assert stub.dropped == 1, "the server was not told"
    expect(page.locator("#stop")).to_be_disabled()
    expect(page.locator("#send")).to_be_enabled()
    assert turn.locator(".answer").inner_text() == kept


def test_conversation_goes_along_and_settings_are_sent(page, stub):
    page.locator("#system").fill("Be brief.")
    page.locator("#max_tokens").fill("16")
    page.locator("#temperature").fill("0.25")
    ask(page, "first")
    first = answered(page).locator(".answer").inner_text()
    page.locator("#prompt").fill("second")
    body = curl_body(page)
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body["messages"][2]["content"].strip() == first.strip()
    assert body["temperature"] == 0.25 and body["max_tokens"] == 16
    assert "seed" not in body and "stop" not in body and "top_k" not in body
    if SERVER_URL is None:
        page.locator("#send").click()
        answered(page)
        assert stub.bodies[-1] == body


def test_edit_replaces_the_last_message_and_regenerate_asks_again(page):
    page.locator("#max_tokens").fill("8")
    ask(page, "first")
    answered(page).get_by_role("button", name="Regenerate").click()
    answered(page)
    expect(page.locator(".turn")).to_have_count(1)
    page.get_by_role("button", name="Edit").click()
    expect(page.locator("#prompt")).to_have_value("first")
    expect(page.locator("#editing")).to_be_visible()
    ask(page, "better")
    expect(answered(page).locator(".text").first).to_have_text("better")
    expect(page.locator(".turn")).to_have_count(1)
    page.locator("#clear").click()
    expect(page.locator(".turn")).to_have_count(0)


def test_curl_is_quoted_for_a_shell(page, url):
    odd = "it's \"quoted\" $HOME `id` \\ !x\nsecond line é"
    page.get_by_text("Penalties and stop strings").click()
    page.locator("#stop-strings").fill("\\n\\n\nEND's")
    page.locator("#seed").fill("7")
    page.locator("#prompt").fill(odd)
    words = curl(page)
    assert words[:3] == ["curl", "-N", url.rstrip("/") + "/v1/chat/completions"]
    assert words[3:5] == ["-H", "Content-Type: application/json"]
    body = curl_body(page)
    assert body["messages"] == [{"role": "user", "content": odd}]
    assert body["stop"] == ["\n\n", "END's"] and body["seed"] == 7
    assert body["stream"] is True and body["stream_options"] == {"include_usage": True}


def test_curl_is_copied(open_page):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.locator("#prompt").fill("copy me")
    page.locator("#copy-curl").click()
    expect(page.locator("#copy-curl")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#curl").text_content()


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
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        name, ring = page.evaluate(
            "[document.activeElement.id || document.activeElement.textContent.trim(),"
            " getComputedStyle(document.activeElement).outlineStyle]"
        )
        assert ring != "none" or name.startswith("Octavo"), f"no visible focus on {name}"
        reached.add(name)
    assert {"clear", "send", "temperature", "seed", "curl", "copy-curl", "key-button", "transcript"} <= reached


def test_no_control_lacks_a_name(page):
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, textarea, select')].filter(e => !e.labels.length).map(e => e.id)"
    )
    assert nameless == []


def test_value_out_of_range_is_pointed_at_and_not_sent(page, stub):
    page.locator("#top_p").fill("3")
    ask(page, "hello")
    expect(page.locator("#top_p")).to_be_focused()
    expect(page.locator(".turn")).to_have_count(0)
    page.get_by_role("button", name="Reset settings").click()
    expect(page.locator("#top_p")).to_have_value("")
    expect(page.locator("#max_tokens")).to_have_value("512")
    assert "top_p" not in curl_body(page)


def test_complete_mode_continues_text(page, stub):
    page.locator("#max_tokens").fill("8")
    page.get_by_role("radio", name="Complete").check()
    page.locator("#prompt").fill(" Once upon")
    body = curl_body(page)
    assert body["prompt"] == " Once upon" and "messages" not in body
    page.locator("#prompt").press("Enter")
    assert answered(page).locator(".answer").inner_text().strip() != ""
    if SERVER_URL is None:
        assert stub.bodies == [body]


@stub_only
def test_model_without_template_offers_to_complete(page, stub):
    stub.template = False
    ask(page, "Once upon")
    turn = answered(page)
    expect(turn.locator(".error")).to_contain_text("This model has no chat template.")
    page.get_by_role("button", name="Complete this text instead").click()
    expect(page.locator("#prompt")).to_have_value("Once upon")
    page.keyboard.press("Enter")
    assert "Once upon" in answered(page).locator(".answer").inner_text()


@stub_only
def test_error_on_the_way_is_shown_in_place(page, stub):
    ask(page, "error now")
    turn = answered(page)
    expect(turn.locator(".error")).to_have_text("the engine ran out of <pages>")
    assert turn.locator(".answer").inner_text() != ""
    assert figures(turn)["finish"] == "error"
    ask(page, "cut it")
    expect(answered(page).locator(".error")).to_contain_text("closed before the answer ended")


@stub_only
def test_refused_key_is_asked_for_and_kept_out_of_sight(open_page, stub):
    stub.api_key = "right-key"
    page = open_page()
    expect(page.locator("#key-dialog")).to_be_visible()
    expect(page.locator("#key")).to_be_focused()
    page.keyboard.type("wrong-key")
    page.keyboard.press("Enter")
    expect(page.locator("#key-reason")).to_have_text("The server did not accept this key.")
    page.locator("#key").fill("right-key")
    page.keyboard.press("Enter")
    expect(page.locator("#model-length")).to_contain_text("tokens")
    ask(page, "hello")
    assert "hello" in answered(page).locator(".answer").inner_text()
    assert "Authorization: Bearer $OCTAVO_API_KEY" in curl(page)
    assert '"Authorization: Bearer $OCTAVO_API_KEY"' in page.locator("#curl").inner_text()
    assert "right-key" not in page.content()
    assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 1, ""]
    # If a key becomes invalid later, the prompt waits for a new key and is then sent automatically.
    stub.api_key = "newer-key"
    ask(page, "again")
    expect(page.locator("#key-dialog")).to_be_visible()
    page.locator("#key").fill("newer-key")
    page.keyboard.press("Enter")
    assert "again" in answered(page).locator(".answer").inner_text()


@stub_only
def test_key_withheld_leaves_an_error(open_page, stub):
    stub.api_key = "right-key"
    page = open_page()
    expect(page.locator("#key")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#key-dialog")).to_be_hidden()
    expect(page.locator("#model-length")).to_have_text("Unauthorized")


@stub_only
def test_markup_in_an_answer_is_inert(page):
    ask(page, "html please")
    turn = answered(page)
    assert turn.locator(".answer").inner_text() == page_stub.HTML
    assert turn.locator(".answer").locator("script, img, b").count() == 0
    ask(page, "<img src=x onerror='window.pwned = 1'>")
    answered(page)
    assert page.evaluate("window.pwned") is None


@stub_only
def test_code_is_set_apart(page):
    ask(page, "code please")
    block = answered(page).locator(".answer pre")
    expect(block).to_have_count(1)
    assert block.text_content().startswith("void PagePool::give_back") and block.text_content().endswith("}")
    assert block.get_attribute("data-language") == "cpp"


def test_live_view_moves(page):
    live = page.locator("#live")
    rate = live.locator(".row dd").nth(2)
    expect(live.locator(".row dd").nth(0)).to_have_text(re.compile(r"\d+"))
    ask(page, "slow: count from one to a thousand in words.")
    expect(live.locator(".row dd").nth(0)).to_have_text("1", timeout=ANSWER_MS)
    expect(rate).to_have_text(re.compile(r"[1-9]\d*\.\d|0\.[1-9]"), timeout=ANSWER_MS)
    page.keyboard.press("Escape")
    assert page.locator("#live polyline").get_attribute("points").count(",") >= 1
    grows = page.locator("#live .pages div").evaluate_all("parts => parts.map(p => Number(p.style.flexGrow))")
    assert len(grows) == 3 and sum(grows) > 0
    if SERVER_URL is None:
        assert sum(grows) == 1024
        expect(live.locator(".row dd").nth(3)).to_have_text("62 %")


@stub_only
def test_server_without_metrics_shows_dashes(open_page, stub):
    stub.metrics = False
    page = open_page()
    expect(page.locator("#model-length")).to_contain_text("tokens")
    page.wait_for_timeout(1200)
    assert set(page.locator("#live dd").all_inner_texts()) == {"–"}


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


def test_phone_has_no_sideways_scroll(open_page, stub):
    stub.model = "an-organisation/a-model-with-a-very-long-name-Instruct-Q4_K_M"
    page = open_page(viewport={"width": 360, "height": 640})
    expect(page.locator("#model-length")).to_contain_text("tokens")
    expect(page.locator("#temperature")).to_be_hidden()
    page.locator("#max_tokens").evaluate("input => { input.value = 16 }")
    ask(page, "code " + "x" * 200)
    answered(page)
    page.locator("#panels > summary").click()
    for name in ("Settings", "Penalties and stop strings", "Request as curl"):
        page.get_by_text(name, exact=True).click()
    expect(page.locator("#temperature")).to_be_visible()
    for box in ("html", "main", "#transcript", "#panels"):
        wide, room = page.locator(box).evaluate("e => [e.scrollWidth, e.clientWidth]")
        assert wide <= room, f"{box} is {wide} px in {room}"
    tops = page.locator("#composer .bar button").evaluate_all("all => all.map(b => b.getBoundingClientRect().top)")
    assert max(tops) - min(tops) < 4, "the buttons wrap"


def test_less_motion_on_request(open_page):
    page = open_page(reduced_motion="reduce")
    ask(page, "slow: count from one to a thousand in words.")
    expect(page.locator(".answer")).not_to_be_empty(timeout=ANSWER_MS)
    animation = page.locator(".answer > :last-child").evaluate("e => getComputedStyle(e, '::after').animationName")
    page.keyboard.press("Escape")
    assert animation == "none"


@stub_only
def test_page_is_small():
    assert sum(file.stat().st_size for file in page_stub.PAGE.iterdir()) < 44_000  # bytes
