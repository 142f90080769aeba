"""What tests of the admin UI do with a page, and the guard that watches it.

The guard fails a test on whatever a person would not see and still is wrong: an error of the page or in its console
(a violation of the content security policy is one), an answer of 400 or more that the test did not announce, a request
that failed, and a request to any other host.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    Response,
    WebError,
    expect,
)

AXE = (Path(__file__).parents[1] / "ui" / "axe" / "axe.min.js").read_text(encoding="utf-8")
AXE_FAILS = ["serious", "critical"]
AXE_RUN = """(part, fails) => axe.run(part, {
    resultTypes: ["violations"],
    rules: Object.fromEntries(axe._audit.rules
        .filter(rule => rule.impact && !fails.includes(rule.impact))
        .map(rule => [rule.id, {enabled: false}])),
})"""
"""Without the rules, a third of all, that find nothing worse than moderate: what they find is no failure."""

DESKTOP: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}
CALM: dict[str, Any] = {"reduced_motion": "reduce"}
"""As somebody sees it who wants little motion: otherwise a dot of the header fades in and out for ever, and the browser
draws sixty pages a second, without a graphics card on the processor."""
LOCAL_SCHEMES = ("data", "blob", "about")
AWAY = {
    f"net::ERR_{name}" for name in ("CONNECTION_REFUSED", "CONNECTION_RESET", "INCOMPLETE_CHUNKED_ENCODING")
}
WAIT_MS = 15_000
"""How long an action may take, and what is expected may need, before it fails; chosen for a busy machine."""
expect.set_options(timeout=WAIT_MS)


NO_POINTER_YET = """
const none = new CSSStyleSheet();
none.replaceSync('* { pointer-events: none !important }');
document.adoptedStyleSheets = [none];
document.addEventListener('DOMContentLoaded', () => { document.adoptedStyleSheets = []; });
"""
"""Playwright clicks as soon as it sees a button: so that it waits, as people do, until the page's scripts have run."""


class Guard:
    """Collects what is wrong with the pages of one browser context."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self._context = context
        self._address = address
        self._announced: list[tuple[int, re.Pattern[str]]] = []
        self.problems: list[str] = []
        self.server_may_be_away = False
        """Whether requests may fail because nobody listens, or because the answer broke off."""
        context.on("console", self._console)
        context.on("weberror", self._page_error)
        context.on("request", self._request)
        context.on("requestfailed", self._request_failed)
        context.on("response", self._response)

    def expect(self, status: int, path: str) -> None:
        """Announce answers with this status of a path (a regular expression for the whole of it)."""
        self._announced.append((status, re.compile(path)))

    def check(self) -> None:
        """Fail if anything was wrong so far."""
        for page in self._context.pages:
            page.evaluate("0")  # what the browser has told by now is delivered
        if self.problems:
            raise AssertionError("\n".join(self.problems))

    def _console(self, message: ConsoleMessage) -> None:
        # The answers with an error are seen by _response, which knows the announced ones.
        # The browser's words, and htmx's for an answer with an error and for none.
        seen = (
            "Failed to load resource",
            "Response Status Error Code",
            "htmx:sendError",
            "htmx:afterRequest",
        )
        if message.type == "error" and not message.text.startswith(seen):
            self.problems.append(f"console: {message.text}")

    def _page_error(self, error: WebError) -> None:
        self.problems.append(f"page error: {error.error}")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.netloc != self._address and parts.scheme not in LOCAL_SCHEMES:
            self.problems.append(f"request to another host: {request.url}")

    def _request_failed(self, request: Request) -> None:
        # Leaving a page ends its live updates.
        allowed = {"net::ERR_ABORTED"} | (AWAY if self.server_may_be_away else set())
        if request.failure not in allowed:
            self.problems.append(f"request failed: {request.method} {request.url}: {request.failure}")

    def _response(self, response: Response) -> None:
        path = urlsplit(response.url).path
        is_announced = any(
            response.status == status and pattern.fullmatch(path) for status, pattern in self._announced
        )
        if response.status >= 400 and not is_announced:
            self.problems.append(f"answer {response.status}: {response.request.method} {response.url}")


@contextmanager
def guarded_page(browser: Browser, url: str, **options: Any) -> Iterator[tuple[Page, Guard]]:
    """A page in a context of its own whose addresses are below `url`; at the end the guard has its say.

    options: those of a Playwright context; DESKTOP and PHONE are some.
    """
    context = browser.new_context(**{**DESKTOP, **CALM, "base_url": url, **options})
    context.set_default_timeout(WAIT_MS)
    context.add_init_script(NO_POINTER_YET)
    try:
        guard = Guard(context, urlsplit(url).netloc)
        yield context.new_page(), guard
        guard.check()
    finally:
        context.close()


def log_in(page: Page, key: str) -> None:
    """Log in by the form, and wait for the page it leads to."""
    page.goto("/login")
    page.locator("input[type=password]").fill(key)
    page.locator("input[type=password]").press("Enter")
    page.wait_for_url(lambda url: urlsplit(url).path != "/login")


def axe(shown: Page | Locator) -> None:
    """Fail on what axe-core finds serious or critical in the page as it is, or in one part of it.

    A dialog takes 0.1 s of processor time, a page that has 1,000 elements a second.
    """
    part = shown.locator(":root") if isinstance(shown, Page) else shown
    if not part.page.evaluate("'axe' in window"):
        part.page.evaluate(AXE)
    found = part.evaluate(AXE_RUN, AXE_FAILS)["violations"]
    violations = [
        f"{violation['impact']} {violation['id']}: {node['html'][:160]}: {node['failureSummary']}"
        for violation in found
        if violation["impact"] in AXE_FAILS
        for node in violation["nodes"]
    ]
    if violations:
        raise AssertionError("\n".join(violations))


def dark(page: Page) -> Page:
    """The page as somebody sees it whose system is dark."""
    page.emulate_media(color_scheme="dark")
    return page


def hide(page: Page, hidden: bool) -> None:
    """Tell the page that its tab is hidden or shown; a browser without a window never says so itself."""
    page.evaluate(
        "hidden => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')) }",
        hidden,
    )


def keyboard(page: Page, keys: str) -> None:
    """Press keys one after the other, as "g q", once the page knows them: its scripts run after its text is there."""
    page.wait_for_load_state("domcontentloaded")
    for key in keys.split():
        page.keyboard.press(key)


def confirm(button: Locator) -> None:
    """Click a button that asks, once what comes is no double click."""
    button.page.wait_for_function(
        "button => performance.now() - Number(button.dataset.asked) >= 600", arg=button.element_handle()
    )
    button.click()


def focused(page: Page) -> str:
    """The tag, id and text of what has the focus, as "button#pause Pause queue"."""
    return page.evaluate(
        "(({tagName, id, textContent}) => `${tagName.toLowerCase()}${id ? '#' + id : ''}"
        " ${textContent.trim().replace(/\\s+/g, ' ')}`)(document.activeElement)"
    )


def without_cache(page: Page) -> Page:
    """The page as somebody sees it who was never here before: nothing it loads comes from the cache."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    return page


def transferred_bytes(page: Page) -> int:
    """What the page and all it has loaded so far came to on the wire, headers included; nothing for what was cached."""
    return page.evaluate(
        "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
        ".reduce((sum, entry) => sum + entry.transferSize, 0)"
    )


def sideways_pixels(page: Page) -> int:
    """By how many pixels the page is wider than its window; a page must not scroll sideways.

    Not than `innerWidth`: a phone makes its window wider for a page that does not fit, and everything smaller.
    """
    size = page.viewport_size
    assert size is not None
    return page.evaluate("document.documentElement.scrollWidth") - size["width"]
