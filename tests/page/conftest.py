"""Fixtures of the tests of the playground: a stub server, Chromium and the opened page."""

from urllib.parse import urlsplit

import pytest

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]


@pytest.fixture(scope="session")
def browser():
    import page_driver

    with page_driver.playwright_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=page_driver.CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def stub():
    """A test may change the stub's fields before it opens the page."""
    import page_stub

    with page_stub.serve() as running:
        yield running


@pytest.fixture
def url(stub) -> str:
    import page_driver

    return page_driver.SERVER_URL or stub.url


@pytest.fixture
def open_page(browser, url):
    """open_page(**context options) opens the playground; afterwards, asserts that the browser reported no errors and that every
    request went to the server of the page."""
    contexts, complaints = [], []

    def watch_console(message) -> None:
        # The browser logs refused requests, which some tests provoke.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            complaints.append(message.text)

    def watch_requests(request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme != "blob" and parts.netloc != urlsplit(url).netloc:
            complaints.append(f"a request to {request.url}")

    def open_it(**options):
        context = browser.new_context(**options)
        contexts.append(context)
        context.on("request", watch_requests)
        page = context.new_page()
        page.on("console", watch_console)
        page.on("pageerror", lambda error: complaints.append(str(error)))
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
    import page_driver

    # Wide enough for all three columns.
    opened = open_page(viewport={"width": 1300, "height": 800})
    page_driver.wait_for_model(opened)
    return opened
