"""Asking and answering: streams, figures, stopping, editing, errors."""

import re

from page_answers import PLAIN
from page_driver import ANSWER_MS, SERVER_URL, answer_to, answered, ask, curl_body, expect, figures, stub_only


def test_answer_streams_with_its_figures(page):
    ask(page, "Say hello in one short sentence.")
    turn = answered(page)
    assert turn.locator(".answer").inner_text().strip() != ""
    shown = figures(turn)
    assert list(shown)[:4] == ["speed", "first token", "prompt", "answer"]
    assert re.fullmatch(r"\d+\.\d tokens/s", shown["speed"])
    assert re.fullmatch(r"\d+ ms|\d+\.\d\d s", shown["first token"])
    assert re.fullmatch(r"[1-9][\d,]* tokens?(, [\d,]+ cached)?", shown["prompt"])
    assert re.fullmatch(r"[1-9][\d,]* tokens?", shown["answer"])
    assert shown.get("ended") in (None, "reached Max tokens")
    assert all(figure.get_attribute("title") for figure in turn.locator(".figures > div").all()), "a figure without explanation"
    expect(page.locator("#status")).not_to_have_text("Answering")


@stub_only
def test_split_bytes_are_put_together(page):
    ask(page, "naïve question")
    turn = answered(page)
    said = PLAIN.format("naïve question")
    assert turn.locator(".answer").inner_text() == said
    expect(page.locator("#status")).to_have_text(said)
    assert figures(turn)["prompt"] == "24 tokens, 16 cached" and "ended" not in figures(turn)


def test_stop_ends_the_answer_and_keeps_what_came(page, stub):
    page.locator("#max_tokens").fill("4000")
    ask(page, "slow: count from one to a thousand in words.")
    expect(page.locator(".answer")).not_to_be_empty(timeout=ANSWER_MS)
    page.locator("#stop").click()
    turn = answered(page)
    assert figures(turn)["ended"] == "stopped"
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


def test_regenerate_asks_again_and_edit_replaces_the_message(page):
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


@stub_only
def test_edit_of_an_earlier_message_drops_what_came_after(page, stub):
    for text in ("one", "two", "three"):
        answer_to(page, text)
    page.locator(".turn").nth(1).get_by_role("button", name="Edit").click()
    expect(page.locator("#editing")).to_contain_text("everything after it")
    answer_to(page, "two again")
    expect(page.locator(".turn")).to_have_count(2)
    sent = [message["content"] for message in stub.bodies[-1]["messages"]]
    assert sent == ["one", PLAIN.format("one"), "two again"]
    # Escape leaves the conversation as it is.
    page.locator(".turn").first.get_by_role("button", name="Edit").click()
    page.keyboard.press("Escape")
    expect(page.locator("#editing")).to_be_hidden()
    expect(page.locator("#prompt")).to_have_value("")
    expect(page.locator(".turn")).to_have_count(2)


@stub_only
def test_reasoning_is_folded_above_the_answer(page):
    ask(page, "think about it")
    turn = answered(page)
    expect(turn.locator(".thinking")).to_contain_text("Reasoning")
    expect(turn.get_by_text("Let me see.")).to_be_hidden()
    turn.get_by_text("Reasoning").click()
    expect(turn.get_by_text("Let me see.")).to_be_visible()
    assert "Let me see." not in turn.locator(".answer").inner_text()


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
    assert figures(turn)["ended"] == "error"
    ask(page, "cut it")
    expect(answered(page).locator(".error")).to_contain_text("closed before the answer ended")
