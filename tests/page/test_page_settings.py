"""Settings, the request as curl, API keys, the model and the live view."""

import re

from page_driver import ANSWER_MS, SERVER_URL, answered, ask, curl, curl_body, expect, stub_only, wait_for_model


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


def test_value_out_of_range_is_pointed_at_and_not_sent(page, stub):
    page.locator("#top_p").fill("3")
    ask(page, "hello")
    expect(page.locator("#top_p")).to_be_focused()
    expect(page.locator(".turn")).to_have_count(0)
    page.get_by_role("button", name="Reset settings").click()
    expect(page.locator("#top_p")).to_have_value("")
    expect(page.locator("#max_tokens")).to_have_value("1024")
    assert "top_p" not in curl_body(page)


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
    assert "right-key" not in page.evaluate("JSON.stringify(localStorage)")
    assert page.evaluate("[sessionStorage.length, document.cookie]") == [1, ""]
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


def test_live_view_moves(page):
    live = page.locator("#live")
    rate = live.locator(".row dd").nth(2)
    expect(live.locator(".row dd").nth(0)).to_have_text(re.compile(r"\d+"))
    ask(page, "slow: count from one to a thousand in words.")
    expect(live.locator(".row dd").nth(0)).to_have_text("1", timeout=ANSWER_MS)
    expect(rate).to_have_text(re.compile(r"[1-9]\d*\.\d|0\.[1-9]"), timeout=ANSWER_MS)
    page.keyboard.press("Escape")
    assert page.locator("#live polyline").get_attribute("points").count(",") >= 1
    grows = page.locator("#live .memory div").evaluate_all("parts => parts.map(p => Number(p.style.flexGrow))")
    assert len(grows) == 3 and sum(grows) > 0
    if SERVER_URL is None:
        assert sum(grows) == 1024
        assert page.locator("#live .legend li").nth(1).inner_text() == "cached 620 MB"
        expect(live.locator(".row dd").nth(3)).to_have_text("62 %")


@stub_only
def test_server_without_metrics_shows_dashes(open_page, stub):
    stub.metrics = False
    page = open_page()
    expect(page.locator("#model-length")).to_contain_text("tokens")
    page.wait_for_timeout(1200)
    assert set(page.locator("#live .row dd, #live .line dd, #live .legend span").all_inner_texts()) == {"–"}


@stub_only
def test_empty_control_shows_the_servers_default(open_page, stub):
    stub.defaults = {"temperature": 0.699999988, "top_p": 0.95, "top_k": 40}
    page = open_page()
    wait_for_model(page)
    shown = {name: page.locator(f"#{name}").get_attribute("placeholder") for name in ("temperature", "top_p", "top_k", "min_p")}
    assert shown == {"temperature": "default 0.7", "top_p": "default 0.95", "top_k": "default 40", "min_p": "default 0"}
    page.locator("#prompt").fill("hello")
    assert "temperature" not in curl_body(page), "a default is the server's to apply"


@stub_only
def test_model_with_several_names_is_listed_once(open_page, stub):
    stub.aliases = ["other-name", "third-name"]
    page = open_page()
    wait_for_model(page)
    assert page.locator("#model option").all_inner_texts() == [stub.model]
    assert curl_body(page)["model"] == stub.model


def test_live_view_explains_its_words(page):
    live = page.locator("#live")
    names = live.locator(".row dt, .line dt").all_inner_texts()
    assert names == ["Answering", "Waiting", "Tokens/s", "Reused", "Memory for requests"]
    assert all(figure.get_attribute("title") for figure in live.locator(".row > div, .line > div").all())
    live.get_by_text("What these mean").click()
    assert live.locator(".meanings dt").all_inner_texts() == names
    legend = live.locator(".legend li").all_inner_texts()
    assert [entry.split()[0] for entry in legend] == ["used", "cached", "free"]
    assert not re.search(r"\bKV\b|prefix|referenced|\bpages\b", live.inner_text()), "engine words"


@stub_only
def test_memory_is_a_share_if_the_server_gives_no_bytes(open_page, stub):
    stub.memory = False
    page = open_page()
    expect(page.locator("#live .legend li").nth(1)).to_have_text("cached 30 %")
