"""A server that loads several models by name: choosing, loading, and comparing two of them."""

import pytest
from page_driver import SERVER_URL, answered, ask, expect, figures

pytestmark = pytest.mark.skipif(SERVER_URL is not None, reason="needs the stub's models")
LOADED, OTHER = "org/first", "org/second"


@pytest.fixture
def several(stub, open_page):
    stub.states = {OTHER: "unloaded", LOADED: "loaded"}
    page = open_page(viewport={"width": 1300, "height": 800})
    expect(page.locator("#model-length")).to_contain_text("tokens")
    return page


def test_a_loaded_model_is_chosen_first(several):
    assert several.locator("#model").input_value() == LOADED
    assert several.locator("#model option").all_inner_texts() == [f"{OTHER} (not loaded)", LOADED]


def test_first_message_loads_the_model_and_shows_its_progress(several, stub):
    several.locator("#model").select_option(OTHER)
    expect(several.locator("#model-length")).to_have_text("not loaded: the first message loads it")
    ask(several, "hello")
    expect(several.locator(".turn .waiting")).to_have_text(f"{OTHER}: loading, 40 %")
    turn = answered(several)
    expect(turn.locator(".waiting")).to_be_hidden()
    assert stub.bodies[-1]["model"] == OTHER
    assert figures(turn)["model"] == OTHER
    expect(several.locator("#model-length")).to_contain_text("8,192 tokens")
    several.reload()
    assert figures(answered(several))["model"] == OTHER, "stored with the conversation"


def test_models_are_loaded_and_unloaded_by_button(several, stub):
    several.locator("#model").select_option(OTHER)
    several.get_by_role("button", name="Load", exact=True).click()
    expect(several.get_by_role("button", name="Unload")).to_be_enabled()
    assert stub.states[OTHER] == "loaded"
    several.get_by_role("button", name="Unload").click()
    expect(several.get_by_role("button", name="Load", exact=True)).to_be_enabled()
    assert stub.states[OTHER] == "unloaded"


def test_two_models_answer_side_by_side(several, stub):
    several.locator("#compare-button").click()
    several.locator("#compare-prompt").fill("hello")
    several.locator("#compare-send").click()
    for number, name in ((0, LOADED), (1, OTHER)):
        column = several.locator(".compare-column").nth(number)
        expect(column.locator(".figures")).to_contain_text("tokens/s")
        assert column.locator("select").input_value() == name
        assert "hello" in column.locator(".reply").inner_text()
        expect(column.locator(".note")).to_be_empty()
    assert sorted(body["model"] for body in stub.bodies) == [LOADED, OTHER]
    several.locator("#compare-close").click()
    expect(several.locator(".turn")).to_have_count(0)


def test_closing_the_comparison_stops_both(several, stub):
    several.locator("#compare-button").click()
    several.locator("#compare-second").select_option(LOADED)
    several.locator("#compare-prompt").fill("slow: count to a thousand")
    several.locator("#compare-send").click()
    expect(several.locator(".compare-column .reply").nth(1)).not_to_be_empty()
    several.keyboard.press("Escape")
    expect(several.locator("#compare-dialog")).to_be_hidden()
    several.wait_for_function("() => true", timeout=1000)
    several.locator("#compare-button").click()
    expect(several.locator("#compare-send")).to_be_enabled()
    assert stub.running == 0 or stub.dropped > 0


def test_one_model_needs_no_comparison(open_page):
    page = open_page()
    expect(page.locator("#model-length")).to_contain_text("tokens")
    expect(page.locator("#compare-button")).to_be_hidden()
    expect(page.locator("#load-model")).to_be_hidden()
