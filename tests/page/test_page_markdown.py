"""Answers in Markdown: every element, code, and that nothing in an answer is run or loaded."""

from page_answers import CODE, HTML, MARKDOWN
from page_driver import answer_to, answered, ask, expect, stub_only

pytestmark = stub_only


def test_elements_of_markdown(page):
    answer = answer_to(page, "markdown")
    assert answer.locator("h3").inner_text() == "Heading one" and answer.locator("h4").inner_text() == "Lists"
    assert answer.locator("strong").first.inner_text() == "bold"
    assert answer.locator("em").first.inner_text() == "slanted" and answer.locator("del").inner_text() == "struck"
    assert answer.locator("p > code").inner_text() == "inline <code>"
    assert "<entities> © €" in answer.locator("p").first.inner_text()
    assert answer.locator("ol > li").count() == 2 and answer.locator("ol ul > li").count() == 2
    boxes = answer.get_by_role("checkbox")
    assert [box.is_checked() for box in boxes.all()] == [True, False] and boxes.first.is_disabled()
    assert answer.locator("blockquote").inner_text().split() == ["A", "quote", "of", "two", "lines."]
    assert answer.locator("hr").count() == 1


def test_table(page):
    table = answer_to(page, "markdown").get_by_role("table")
    assert table.get_by_role("columnheader").all_inner_texts() == ["Name", "Size", "Share"]
    assert table.get_by_role("cell").all_inner_texts() == ["weights", "1.2 GB", "60 %", "pages", "0.8 GB", "40 %"]
    aligned = table.locator("tbody tr").first.locator("td").evaluate_all("all => all.map(c => getComputedStyle(c).textAlign)")
    assert aligned == ["left", "right", "center"]


def test_code_is_highlighted(page):
    block = answer_to(page, "markdown").locator(".code").first
    expect(block.locator(".is-keyword").first).to_have_text("def")
    expect(block.locator(".is-title")).to_have_text("twice")
    assert "# a comment" in block.locator(".is-comment").all_inner_texts()
    assert block.locator("code").text_content() == MARKDOWN.split("```python\n")[1].split("\n```")[0]
    colours = block.locator(".is-keyword, .is-comment, .is-title").evaluate_all("all => all.map(e => getComputedStyle(e).color)")
    assert len(set(colours)) == 3
    plain = page.locator(".code").nth(1)
    assert plain.locator("code").inner_text() == "no language" and plain.locator("span[class]").count() == 0


def test_every_language_loads(page):
    """Through the page's own module, so that each file is found and understood."""
    coloured = page.evaluate(
        """async () => {
          const { highlight } = await import(new URL("page/highlight.js", document.baseURI));
          const names = ["sh", "c++", "cs", "css", "diff", "go", "toml", "java", "js", "json", "py", "rs", "sql", "tsx", "html", "yml"];
          const text = `// "text" 12\\n# if = <a b='c'>\\n+ add\\nreturn { 'a': true } -- select x from y;\\n[a]\\nb: 1`;
          return Promise.all(names.map(async (name) => {
            const figure = document.createElement("figure");
            figure.dataset.language = name;
            figure.append(document.createElement("code"));
            figure.firstChild.textContent = text;
            await highlight(figure);
            return [name, figure.querySelectorAll("span").length > 0, figure.textContent === text];
          }));
        }"""
    )
    assert len(coloured) == 16 and all(spans and same for _, spans, same in coloured), coloured


def test_code_is_copied(open_page):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    block = answer_to(page, "code please").locator(".code")
    expect(block).to_have_count(1)
    assert block.get_attribute("data-language") == "cpp"
    block.get_by_role("button", name="Copy code").click()
    expect(block.get_by_role("button")).to_have_text("Copied")
    code = CODE.split("```cpp\n")[1].split("\n```")[0]
    assert page.evaluate("navigator.clipboard.readText()") == code
    page.locator(".actions").get_by_role("button", name="Copy", exact=True).click()
    page.wait_for_timeout(100)
    assert page.evaluate("navigator.clipboard.readText()") == CODE, "the answer is copied as Markdown"


def test_links_are_safe(page):
    answer = answer_to(page, "links")
    links = answer.locator("a").evaluate_all("all => all.map(a => [a.textContent, a.protocol, a.target, a.rel])")
    assert {protocol for _, protocol, _, _ in links} == {"https:", "mailto:"}
    assert {(target, rel) for _, _, target, rel in links} == {("_blank", "noopener noreferrer nofollow")}
    names = [name for name, *_ in links]
    assert "site" in names and "picture" in names and not {"script", "data", "odd", "here", "entity", "vb"} & set(names)
    for name in ("script", "data", "odd", "here", "entity", "vb"):
        assert name in answer.inner_text(), f"the text of {name} is lost"
    assert answer.locator("img").count() == 0, "a picture would be loaded from elsewhere"
    assert answer.evaluate("e => [...e.querySelectorAll('*')].some(x => [...x.attributes].some(a => a.name.startsWith('on')))") is False
    assert page.evaluate("window.pwned") is None


def test_markup_in_an_answer_is_inert(page):
    ask(page, "html please")
    turn = answered(page)
    assert turn.locator(".answer").inner_text() == HTML
    assert turn.locator(".answer").locator("script, img, b").count() == 0
    ask(page, "<img src=x onerror='window.pwned = 1'>")
    answered(page)
    assert page.evaluate("window.pwned") is None


def test_hostile_markdown_is_shown_and_quick(page):
    """Deep nesting and unclosed marks: shown, if need be as plain text, without an error."""
    milliseconds = page.evaluate(
        """async () => {
          const { MarkdownView } = await import(new URL("page/markdown.js", document.baseURI));
          const texts = [">".repeat(3000) + " deep", "- ".repeat(1500) + "deep", "[".repeat(3000) + "deep", "*_".repeat(2000) + "deep",
                         "`".repeat(3000) + "deep", "| a ".repeat(1000) + "deep\\n" + "|-".repeat(1000), "<".repeat(3000) + "deep"];
          const start = performance.now();
          for (const text of texts) {
            const element = document.createElement("div");
            new MarkdownView(element).show(text, true);
            if (!element.textContent.includes("deep")) throw new Error("lost: " + text.slice(0, 20));
          }
          return performance.now() - start;
        }"""
    )
    assert milliseconds < 20_000


def test_streaming_keeps_finished_blocks(page):
    """A block that is complete keeps its element while the rest streams, so that a selection in it stays."""
    kept = page.evaluate(
        """async (text) => {
          const { MarkdownView } = await import(new URL("page/markdown.js", document.baseURI));
          const [grown, whole] = [document.createElement("div"), document.createElement("div")];
          const view = new MarkdownView(grown);
          let first = null;
          for (let end = 1; end <= text.length; end += 1) {
            view.show(text.slice(0, end), end === text.length);
            if (end === 20) first = grown.firstChild;
          }
          new MarkdownView(whole).show(text, true);
          await new Promise((done) => setTimeout(done, 500));
          return [first === grown.firstChild, grown.innerHTML === whole.innerHTML];
        }""",
        MARKDOWN,
    )
    assert kept == [True, True]
