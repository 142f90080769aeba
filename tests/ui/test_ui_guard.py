"""The guard of the browser tests notices what it is there for: a guard that sees nothing would pass everything."""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page

from support.browser import axe, focused, guarded_page, keyboard, sideways_pixels, transferred_bytes

PAGES = {
    "/fine": "<!doctype html><html lang=en><title>Fine</title><main><h1>Fine</h1><a href=/fine>again</a></main>",
    "/inline-script": "<!doctype html><title>a</title><script>1</script>",
    "/inline-style": "<!doctype html><title>a</title><p style='color: red'>a",
    "/console": "<!doctype html><title>a</title><script src=/console.js></script>",
    "/console.js": "console.error('it is wrong')",
    "/throws": "<!doctype html><title>a</title><script src=/throws.js></script>",
    "/throws.js": "nothing.at.all()",
    "/missing-picture": "<!doctype html><title>a</title><img alt=a src=/none.png>",
    "/elsewhere": "<!doctype html><title>a</title><img alt=a src=http://127.0.0.2:9/a.png>",
    "/unlabelled": "<!doctype html><html lang=en><title>a</title><main><h1>a</h1><input><img src='data:,'></main>",
}
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: http://127.0.0.2:9"


class Answer(BaseHTTPRequestHandler):
    """The pages above, as strict as ours."""

    def do_GET(self) -> None:
        page = PAGES.get(self.path)
        body = (page or "no such page").encode()
        self.send_response(404 if page is None else 200)
        is_script = self.path.endswith(".js")
        self.send_header("Content-Type", "text/javascript" if is_script else "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with serving() as url:
        yield url


@contextmanager
def serving() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


PROBLEMS = {
    "/inline-script": "console: .*inline script.*Content Security Policy.*",
    "/inline-style": "console: .*inline style.*Content Security Policy.*",
    "/console": "console: it is wrong",
    "/throws": "page error: .*nothing is not defined",
    "/missing-picture": r"answer 404: GET .*/none\.png",
    "/none": "answer 404: GET .*/none",
    "/elsewhere": r"request to another host: http://127\.0\.0\.2:9/a\.png",
}


def visit(page: Page, *paths: str) -> None:
    for path in paths:
        page.goto(path)


def test_what_nobody_sees_fails_the_test(chromium, url) -> None:
    with (
        chromium.awake() as browser,
        pytest.raises(AssertionError) as raised,
        guarded_page(browser, url) as (page, _),
    ):
        visit(page, *PROBLEMS)
    for problem in PROBLEMS.values():
        assert re.search(f"^{problem}$", str(raised.value), re.MULTILINE), problem


def test_a_page_without_a_fault_passes(chromium, url) -> None:
    with chromium.awake() as browser, guarded_page(browser, url) as (page, guard):
        guard.expect(404, "/favicon.ico")
        guard.expect(404, "/no.*")
        page.goto("/none")
        page.goto("/fine")
        axe(page)
        keyboard(page, "Tab")
        assert focused(page) == "a again"
        assert 100 < transferred_bytes(page) < 1_000
        assert sideways_pixels(page) == 0


def test_axe_works_under_the_policy_and_finds_what_nobody_can_use(chromium, url) -> None:
    with chromium.awake() as browser, guarded_page(browser, url) as (page, guard):
        guard.expect(404, "/favicon.ico")
        page.goto("/unlabelled")
        for shown in (page, page.locator("main")):
            with pytest.raises(AssertionError, match=r"critical label: <input>"):
                axe(shown)
        axe(page.locator("h1"))


def test_other_tests_of_this_worker_may_use_asyncio(chromium) -> None:
    async def main() -> str:
        return "done"

    assert asyncio.run(main()) == "done"
    with chromium.awake() as browser:
        assert browser.is_connected()
    assert asyncio.run(main()) == "done"
