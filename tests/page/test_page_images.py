"""Images in messages: chosen, pasted and dropped; shown, removed, sent, kept and exported."""

import base64
import json
import struct
import zlib

import pytest
from page_driver import answered, ask, curl_body, downloaded, expect, import_text, stub_only, wait_for_model

pytestmark = stub_only


def png(red: int, green: int, blue: int, width: int = 12, height: int = 8) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (b"\0" + bytes((red, green, blue)) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


RED, BLUE = png(200, 30, 30), png(30, 60, 200, 8, 12)


def url_of(image: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(image).decode()


def part(image: bytes) -> dict:
    return {"type": "image_url", "image_url": {"url": url_of(image)}}


@pytest.fixture
def page(open_page, stub):
    """The playground of a server whose model takes images."""
    stub.images = True
    opened = open_page(viewport={"width": 1300, "height": 800})
    wait_for_model(opened)
    return opened


def choose(page, *images: bytes, mime: str = "image/png") -> None:
    files = [{"name": f"picture-{i}.png", "mimeType": mime, "buffer": image} for i, image in enumerate(images)]
    page.locator("#image-file").set_input_files(files)


def send_event(page, kind: str, image: bytes, mime: str = "image/png", text: str | None = None) -> None:
    """Pastes or drops a file, as the browser reports it."""
    page.evaluate(
        """([kind, bytes, mime, text]) => {
          const data = new DataTransfer();
          data.items.add(new File([Uint8Array.from(bytes)], 'picture', { type: mime }));
          if (text !== null) data.items.add(text, 'text/plain');
          const init = { bubbles: true, cancelable: true };
          const event = kind === 'paste' ? new ClipboardEvent(kind, { ...init, clipboardData: data })
            : new DragEvent(kind, { ...init, dataTransfer: data });
          document.getElementById('prompt').dispatchEvent(event);
        }""",
        [kind, list(image), mime, text],
    )


def previews(page):
    return page.locator("#images img")


def drawn(images) -> list[list[int]]:
    """The sizes of pictures after the browser has decoded them."""
    return images.evaluate_all("all => Promise.all(all.map(i => i.decode().then(() => [i.naturalWidth, i.naturalHeight])))")


def test_chosen_pasted_and_dropped_images_are_sent_before_the_text(page, stub, tmp_path):
    page.get_by_role("button", name="Image", exact=True).wait_for()
    choose(page, RED)
    expect(previews(page)).to_have_count(1)
    send_event(page, "paste", BLUE)
    expect(previews(page)).to_have_count(2)
    send_event(page, "dragover", RED)
    expect(page.locator("#composer")).to_have_class("dropping")
    send_event(page, "drop", RED)
    expect(previews(page)).to_have_count(3)
    expect(page.locator("#composer")).not_to_have_class("dropping")
    assert drawn(previews(page)) == [[12, 8], [8, 12], [12, 8]]
    ask(page, "What do these show?")
    turn = answered(page)
    assert drawn(turn.locator(".pictures img")) == [[12, 8], [8, 12], [12, 8]]
    expect(turn.locator(".question")).to_have_text("What do these show?")
    expect(previews(page)).to_have_count(0)
    content = stub.bodies[-1]["messages"][-1]["content"]
    assert content == [part(RED), part(BLUE), part(RED), {"type": "text", "text": "What do these show?"}]
    page.screenshot(path=tmp_path / "images.png")


def test_an_image_is_removed_before_it_is_sent(page, stub):
    choose(page, RED, BLUE)
    expect(previews(page)).to_have_count(2)
    page.get_by_role("button", name="Remove image 1").click()
    expect(previews(page)).to_have_count(1)
    expect(page.locator("#prompt")).to_be_focused()
    ask(page, "only blue")
    answered(page)
    assert stub.bodies[-1]["messages"][-1]["content"] == [part(BLUE), {"type": "text", "text": "only blue"}]


def test_an_image_alone_is_a_message(page, stub):
    choose(page, RED)
    expect(previews(page)).to_have_count(1)
    page.locator("#send").click()
    answered(page)
    assert stub.bodies[-1]["messages"][-1]["content"] == [part(RED)]
    expect(page.locator("#conversations .open span")).to_have_text("Image")


def test_later_messages_carry_the_images_of_earlier_ones(page, stub):
    choose(page, RED)
    ask(page, "first")
    answered(page)
    ask(page, "second")
    answered(page)
    first, _, second = stub.bodies[-1]["messages"]
    assert first["content"] == [part(RED), {"type": "text", "text": "first"}] and second["content"] == "second"


def test_regenerate_and_edit_keep_the_images(page, stub):
    choose(page, RED)
    ask(page, "again")
    answered(page).get_by_role("button", name="Regenerate").click()
    answered(page)
    assert stub.bodies[-1]["messages"] == stub.bodies[-2]["messages"]
    answered(page).get_by_role("button", name="Edit").click()
    expect(previews(page)).to_have_count(1)
    page.get_by_role("button", name="Remove image 1").click()
    ask(page, "without")
    answered(page)
    expect(page.locator(".turn")).to_have_count(1)
    assert stub.bodies[-1]["messages"][-1]["content"] == "without"


def test_images_are_kept_over_a_reload_and_in_an_export(page, stub):
    choose(page, RED)
    ask(page, "remember")
    answered(page)
    page.reload()
    wait_for_model(page)
    assert drawn(page.locator(".pictures img")) == [[12, 8]]
    page.locator("#conversations .more").click()
    name, text = downloaded(page, "export-json")
    page.keyboard.press("Escape")
    assert json.loads(text)["conversations"][0]["turns"][0]["images"] == [url_of(RED)]
    import_text(page, name, text)
    assert drawn(page.locator(".pictures img")) == [[12, 8]]
    ask(page, "and now?")
    answered(page)
    assert stub.bodies[-1]["messages"][0]["content"][0] == part(RED)


def test_messages_of_a_chat_api_may_have_images(page):
    content = [{"type": "text", "text": "Q"}, part(BLUE)]
    import_text(page, "chat.json", json.dumps({"messages": [{"role": "user", "content": content}]}))
    assert drawn(page.locator(".pictures img")) == [[8, 12]]
    expect(page.locator(".question")).to_have_text("Q")


@pytest.mark.parametrize("address", [
    "https://example.org/pixel.png", "javascript:window.pwned=1", "data:text/html,<script>1</script>",
    "data:image/svg+xml;base64,PHN2Zy8+", "data:image/png;base64,AA\" onerror=\"window.pwned=1", "blob:x", "page/icon.svg",
])
def test_only_images_in_the_file_are_shown(page, address):
    turn = {"prompt": "odd", "answer": "x", "images": [address]}
    conversations = {"format": "octavo-conversations", "version": 1, "conversations": [{"turns": [turn]}]}
    import_text(page, "odd.json", json.dumps(conversations))
    expect(page.locator(".question")).to_have_text("odd")
    assert page.locator("main img").count() == 0 and page.evaluate("window.pwned") is None


def test_images_too_large_for_the_storage_are_left_out_of_it(page):
    page.evaluate("""() => {
      const real = Storage.prototype.setItem;
      Storage.prototype.setItem = function (key, value) {
        if (value.length > 2000) throw new DOMException('full', 'QuotaExceededError');
        real.call(this, key, value);
      };
    }""")
    choose(page, RED + bytes(3000))
    ask(page, "large")
    answered(page)
    expect(page.locator(".pictures img")).to_have_count(1)
    expect(page.locator("#notice")).to_be_hidden()
    page.reload()
    wait_for_model(page)
    expect(page.locator(".pictures img")).to_have_count(0)
    expect(page.locator(".turn")).to_contain_text("too large to be stored")


def test_other_files_are_refused_with_a_reason(page):
    choose(page, b"%PDF-1.7", mime="application/pdf")
    expect(page.locator("#image-note")).to_contain_text("is not a PNG, JPEG, WebP or GIF image")
    choose(page, b"<svg/>", mime="image/svg+xml")
    expect(page.locator("#image-note")).to_contain_text("is not a PNG, JPEG, WebP or GIF image")
    expect(previews(page)).to_have_count(0)
    choose(page, RED)
    expect(page.locator("#image-note")).to_be_hidden()


def test_a_paste_with_text_stays_text(page):
    send_event(page, "paste", RED, text="a cell of a table")
    expect(previews(page)).to_have_count(0)


def test_curl_shortens_images(page):
    choose(page, RED)
    expect(previews(page)).to_have_count(1)
    page.locator("#prompt").fill("look")
    [image, text] = curl_body(page)["messages"][-1]["content"]
    assert image["image_url"]["url"] == "data:image/png;base64,..." and text["text"] == "look"


def test_a_text_to_complete_has_no_images(page, stub):
    choose(page, RED)
    expect(previews(page)).to_have_count(1)
    page.get_by_role("radio", name="Complete").check()
    expect(page.locator("#image-button")).to_be_hidden()
    ask(page, "Once upon")
    answered(page)
    assert stub.bodies[-1]["prompt"] == "Once upon"


def test_models_without_images_are_not_offered_any(open_page, stub):
    page = open_page(viewport={"width": 1300, "height": 800})
    wait_for_model(page)
    expect(page.locator("#image-button")).to_be_hidden()
    send_event(page, "drop", RED)
    expect(page.locator("#image-note")).to_have_text("This model does not take images.")
    expect(previews(page)).to_have_count(0)
