"""Conversations kept in the browser: list, reload, rename, delete, export and import."""

import json

import page_stub
from page_driver import SERVER_URL, answer_to, answered, ask, downloaded, expect, import_text, stub_only, titles, wait_for_model


def manage(page, number: int = 0) -> None:
    """Opens the dialog of a conversation in the list."""
    page.locator("#conversations .more").nth(number).click()
    expect(page.locator("#conversation-dialog")).to_be_visible()


def test_conversation_is_kept_over_a_reload(page):
    page.locator("#system").fill("Be brief.")
    said = answer_to(page, "remember this").inner_text()
    expect(page.locator("#conversations .open")).to_have_count(1)
    page.reload()
    wait_for_model(page)
    turn = answered(page)
    assert turn.locator(".question").inner_text() == "remember this" and turn.locator(".answer").inner_text() == said
    expect(turn.locator(".figures")).to_contain_text("tokens/s")
    expect(page.locator("#system")).to_have_value("Be brief.")
    expect(turn.get_by_role("button", name="Regenerate")).to_be_visible()


def test_list_opens_conversations(page):
    answer_to(page, "about apples")
    page.locator("#new").click()
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator("#prompt")).to_be_focused()
    answer_to(page, "about pears")
    assert titles(page) == ["about pears", "about apples"]
    expect(page.locator("#conversations [aria-current]")).to_contain_text("about pears")
    page.locator("#conversations .open").nth(1).click()
    expect(page.locator(".question")).to_have_text("about apples")
    expect(page.locator("#conversations [aria-current]")).to_contain_text("about apples")
    assert titles(page) == ["about pears", "about apples"], "opening is not a change"


@stub_only
def test_answer_goes_on_while_another_conversation_is_shown(page, stub):
    stub.token_seconds = 0.2
    ask(page, "first question of two")
    expect(page.locator(".answer")).not_to_be_empty()
    page.locator("#new").click()
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator("#send")).to_be_enabled()
    page.locator("#conversations .open").click()
    assert answered(page).locator(".answer").inner_text() == page_stub.PLAIN.format("first question of two")


def test_rename(page):
    answer_to(page, "a title that is not good")
    manage(page)
    expect(page.locator("#conversation-name")).to_be_focused()
    page.keyboard.type("Better")
    page.keyboard.press("Enter")
    expect(page.locator("#conversation-dialog")).to_be_hidden()
    assert titles(page) == ["Better"]
    answer_to(page, "more")
    page.reload()
    wait_for_model(page)
    assert titles(page) == ["Better"]


def test_delete_takes_two_presses(page):
    answer_to(page, "short-lived")
    manage(page)
    page.locator("#delete-conversation").click()
    expect(page.locator("#delete-conversation")).to_have_text("Delete for good")
    page.keyboard.press("Escape")
    assert titles(page) == ["short-lived"]
    manage(page)
    expect(page.locator("#delete-conversation")).to_have_text("Delete")
    page.locator("#delete-conversation").click()
    page.locator("#delete-conversation").click()
    expect(page.locator("#conversations .open")).to_have_count(0)
    expect(page.locator(".turn")).to_have_count(0)
    assert page.evaluate("localStorage.length") == 0


def test_export_and_import_json(page):
    page.locator("#system").fill("Be brief.")
    said = answer_to(page, "export me").inner_text()
    manage(page)
    name, text = downloaded(page, "export-json")
    page.keyboard.press("Escape")
    assert name == "export-me.json"
    [exported] = json.loads(text)["conversations"]
    assert exported["turns"][0]["prompt"] == "export me" and exported["system"] == "Be brief."
    import_text(page, name, text)
    expect(page.locator("#import-note")).to_have_text("Imported one conversation.")
    assert titles(page) == ["export me"] * 2, "an import is a new conversation"
    expect(page.locator(".answer")).to_have_text(said, use_inner_text=True)
    name, text = downloaded(page, "export-all")
    assert name == "octavo-conversations.json" and len(json.loads(text)["conversations"]) == 2


@stub_only
def test_export_and_import_markdown(page, stub):
    """Even with text that looks like the file's own marks, and with Markdown that looks like its headings."""
    odd = "## You\n\n<!-- octavo:assistant -->\n\\\\<!-- octavo:user -->\n\n"
    page.locator("#system").fill("Be brief.")
    answer_to(page, "markdown")
    answer_to(page, odd)
    manage(page)
    name, text = downloaded(page, "export-markdown")
    page.keyboard.press("Escape")
    assert name == "markdown.md" and text.startswith("# markdown\n")
    assert "## You\n\nmarkdown\n" in text and f"## Answer\n\n{page_stub.BY_WORD['markdown']}\n" in text
    import_text(page, name, text)
    expect(page.locator("#import-note")).to_have_text("Imported one conversation.")
    expect(page.locator(".turn")).to_have_count(2)
    answer_to(page, "what did I say?")
    sent = stub.bodies[-1]["messages"]
    assert sent[0] == {"role": "system", "content": "Be brief."}
    assert [message["content"] for message in sent[1:4]] == ["markdown", page_stub.BY_WORD["markdown"], odd]
    assert sent[4]["content"] == page_stub.PLAIN.format(odd)


def test_messages_of_a_chat_api_are_imported(page):
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}, {"role": "assistant", "content": "**A**"}]
    import_text(page, "chat.json", json.dumps({"model": "m", "messages": messages}))
    expect(page.locator(".answer strong")).to_have_text("A")
    expect(page.locator("#system")).to_have_value("S")


def test_bad_files_are_refused_with_a_reason(page):
    bad = {
        "a.json": ('{"format": "other"}', "holds no conversations"),
        "b.json": ('{"format": ', "Not imported"),
        "c.md": ("# Notes\n\nNot a conversation", "was not exported by Octavo"),
        "d.json": ('{"format": "octavo-conversations", "conversations": [{"turns": [{"prompt": 3}]}]}', "a turn without a prompt"),
        "e.json": ('{"messages": [{"role": "tool", "content": "x"}]}', "the role tool"),
    }
    for name, (text, reason) in bad.items():
        page.locator("#import-note").evaluate("e => { e.textContent = '' }")
        import_text(page, name, text)
        expect(page.locator("#import-note")).to_contain_text(reason)
    assert titles(page) == [] and page.evaluate("localStorage.length") == 0


def test_imported_markup_is_inert(page):
    evil = "<img src=x onerror='window.pwned = 1'>"
    turn = {"prompt": evil, "answer": evil, "error": evil, "measured": {"finish": evil, "usage": {"prompt_tokens": evil}}}
    value = {"format": "octavo-conversations", "conversations": [{"title": evil, "named": True, "id": "../x", "turns": [turn]}]}
    import_text(page, "evil.json", json.dumps(value))
    expect(page.locator(".turn")).to_have_count(1)
    assert titles(page) == [evil]
    assert page.locator("main img, nav img").count() == 0 and page.evaluate("window.pwned") is None


@stub_only
def test_full_storage_is_reported(page):
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') } }")
    ask(page, "hello")
    answered(page)
    expect(page.locator("#status")).to_contain_text("could not store the conversation")
    expect(page.locator("#notice")).to_contain_text("could not store the conversation")


@stub_only
def test_two_tabs_share_the_list(page):
    other = page.context.new_page()
    other.goto(page.url)
    wait_for_model(other)
    answer_to(page, "from the first tab")
    expect(other.locator("#conversations .open")).to_have_count(1)
    other.locator("#conversations .open").click()
    expect(other.locator(".question")).to_have_text("from the first tab")


def test_mode_belongs_to_the_conversation(page):
    answer_to(page, "chat first")
    page.get_by_role("radio", name="Complete").check()
    expect(page.locator(".turn")).to_have_count(0)
    page.locator("#max_tokens").fill("8")
    answer_to(page, "Once upon")
    page.locator("#conversations .open").nth(1).click()
    expect(page.get_by_role("radio", name="Chat")).to_be_checked()
    if SERVER_URL is None:
        page.reload()
        expect(page.get_by_role("radio", name="Chat")).to_be_checked()
