"""The page of workers: who is there, what one holds, what a token may see, and what is escaped."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import httpx
import pytest
from msgspec.structs import replace
from playwright.sync_api import expect

from forq_trio.model.access.types import Scope
from forq_trio.model.workers.types import HeldMessage, JobProgress, WorkerQueue, WorkerReport
from forq_trio.ui.pages.workers import ROWS_A_PAGE
from support.browser import PHONE, axe, sideways_pixels
from support.in_process_ui import InProcessUi, in_process_ui
from support.real_server import SECRET
from support.ui_http import Markup, flat, logged_in
from support.workers import worker_id

ENEMY = "<b onclick=alert(1)>\u202e'\"</b>"


@pytest.fixture
def ui() -> Iterator[InProcessUi]:
    with in_process_ui() as ui:
        yield ui


@pytest.fixture
def visit(ui) -> Iterator[Callable[..., httpx.Client]]:
    with ExitStack() as opened:
        yield lambda key=SECRET: opened.enter_context(logged_in(ui.ui_url, key))


@pytest.fixture
def report(ui) -> Callable[..., str]:
    """report(number, *queues, …): a worker makes itself known; returns its id."""

    def report(
        number: int, *queues: WorkerQueue, name: str = "w", host: str = "host", version: str = "1.0"
    ) -> str:
        made = WorkerReport(worker_id(number), name, host, version, 4117, 1, queues)
        ui.call(ui.broker.report_worker, made)
        return made.id

    return report


def held(ui: InProcessUi, queue: str, content: str) -> HeldMessage:
    """A message that is in flight."""
    ui.call(ui.broker.produce, queue, content)
    (got,) = ui.call(ui.broker.receive, queue)
    return HeldMessage(got.id, got.sequence, got.received_at, got.attempts, got.lease_until)


def test_without_a_worker_the_page_says_how_to_start_one(visit):
    page = visit().get("/workers").text
    assert "No worker is known" in page
    assert "from</span> forq_trio.worker" in flat(page)
    assert 'data-live="nav:workers">0<' in page


def test_workers_are_listed_and_filtered_by_worker_and_by_queue(visit, report):
    browser = visit()
    report(1, WorkerQueue("a", 4, 4), name="mail-1", host="render-7")
    report(2, WorkerQueue("a", 4, 1), WorkerQueue("b", 8), name="mail-2")
    page = browser.get("/workers").text
    assert "All 2 workers answer" in page
    assert "mail-1" in page
    assert 'aria-label="1 of 12 slots busy"' in page
    assert 'data-live="nav:workers">2<' in page
    found = browser.get("/workers", params={"q": "RENDER"}).text
    assert "mail-1" in found
    assert "mail-2" not in found
    assert "No worker matches" in browser.get("/workers", params={"q": "nobody"}).text
    by_queue = browser.get("/workers", params={"by": "queue"}).text
    assert 'href="/queue/b"' in by_queue
    assert 'aria-label="5 of 8 slots busy"' in by_queue


def test_a_group_has_the_number_of_all_pages(visit, report):
    for number in range(ROWS_A_PAGE + 2):
        report(number, WorkerQueue("q", 1, busy=int(number % ROWS_A_PAGE == 0)))
    pages = [visit().get(f"/workers?page={page}").text for page in (1, 2)]
    assert ["Working</b> 2" in page for page in pages] == [True, False]
    assert ["Idle</b> 50" in page for page in pages] == [True, True]


def test_a_row_opens_to_what_the_worker_holds(visit, report, ui):
    browser = visit()
    mine = held(ui, "a", '{"order": 1}')
    other = HeldMessage(worker_id(99), 99, mine.since, 1, mine.lease_until)
    shown = report(1, WorkerQueue("a", 4, 3, 0, 0, (mine, other)))
    part = browser.get(f"/workers/{shown}", headers={"HX-Request": "true"}).text
    assert "Holds 3 messages" in part
    assert "2 of 3 shown" in part
    assert "{&#34;order&#34;: 1}" in part
    assert "1 of 5" in part
    assert "not in flight any more, or held by another" in part
    assert browser.get(f"/workers/{worker_id(7)}").status_code == 404
    assert browser.get("/workers/x").status_code == 404


def test_how_far_a_handler_is_shows_where_its_message_does(visit, report, ui):
    browser = visit()
    mine = held(ui, "a", "x")
    address = f"/queue/a/message/{mine.message_id}"
    for progress, words in ((JobProgress(40, ENEMY), "40 %, &lt;b onclick"), (JobProgress(55), "55 %")):
        shown = report(1, WorkerQueue("a", 4, 1, holds=(replace(mine, progress=progress),)), name=ENEMY)
        live = f"/live/poll/message?queue=a&id={mine.message_id}"
        # Views are read anew after a second at the earliest.
        for path in (f"/workers/{shown}", address, *([live] if progress.percent == 40 else ())):
            text = browser.get(path).text
            assert words in text, path
            assert "<b onclick" not in text, path
            assert Markup(text).refused == [], path
    report(1, WorkerQueue("a", 4, 1, holds=(replace(mine, attempt=2, progress=JobProgress(60)),)))
    assert "60 %" not in browser.get(address).text


def test_the_page_of_a_message_names_the_worker_that_has_it(visit, report, ui):
    browser = visit()
    mine = held(ui, "a", "x")
    address = f"/queue/a/message/{mine.message_id}"
    assert "/workers?q=" not in browser.get(address).text
    report(1, WorkerQueue("a", 4, 1, holds=(mine,)), name="mail & more")
    page = flat(browser.get(address).text)
    assert '>at <a class="link" href="/workers?q=mail+%26+more">mail &amp; more</a>' in page
    assert "mail &amp; more" in flat(browser.get("/workers?q=mail+%26+more").text)


def test_the_page_of_a_queue_says_who_serves_it(visit, report, ui):
    browser = visit()
    ui.call(ui.broker.produce, "a", "x")
    before = browser.get("/queue/a").text
    assert 'id="workers" hidden=""' in before
    assert 'data-live="now:waiting-word">Consumers waiting' in before
    report(1, WorkerQueue("a", 4, 3), WorkerQueue("b", 100), name="mail-1")
    page = browser.get("/queue/a").text
    assert "3 of 4 slots busy" in page
    assert 'data-live="now:waiting-word" hidden=""' in page


def test_what_a_worker_reports_is_text(visit, report):
    browser = visit()
    enemy = report(1, WorkerQueue("a", 4, 1), name=ENEMY, host=ENEMY, version=ENEMY)
    for path in ("/workers", f"/workers/{enemy}", "/live/poll/workers", "/queue/a"):
        text = browser.get(path).text
        assert "<b onclick" not in text, path
        assert "\u202e" not in text, path
        assert Markup(text).refused == [], path


def test_a_token_sees_workers_in_its_queues_alone(visit, report, ui):
    token = ui.call(partial(ui.broker.create_token, "viewer", scopes=[Scope.BROWSE], queues="a*"))
    hidden = report(1, WorkerQueue("b", 4, 1), name="secret-worker")
    shown = report(2, WorkerQueue("a", 4, 1), WorkerQueue("b", 8, 8), name="both")
    browser = visit(token.token)
    page = browser.get("/workers").text
    assert "The worker answers" in page
    assert "secret-worker" not in page
    assert 'aria-label="1 of 4 slots busy"' in page
    assert 'data-live="nav:workers">1<' in page
    assert browser.get(f"/workers/{hidden}").status_code == 404
    assert ">b<" not in browser.get(f"/workers/{shown}").text
    assert "secret-worker" not in browser.get("/live/poll/workers").text


def test_a_worker_that_comes_shows_and_opens_in_a_browser(ui, report, open_page):
    page = open_page(ui)
    page.goto("/workers")
    expect(page.locator("h1")).to_have_text("No worker is known")
    mine = held(ui, "a", "hello")
    report(1, WorkerQueue("a", 4, 1, 0, 0, (mine,)), name="mail-1")
    expect(page.locator("h1")).to_have_text("The worker answers")
    row = page.get_by_role("button", name="mail-1")
    row.click()
    expect(page.get_by_text("Holds 1 message")).to_be_visible()
    report(1, WorkerQueue("a", 4, 2, 0, 0, (mine,)), name="mail-1")
    expect(row).to_contain_text("2 of 4")
    axe(page)


@pytest.mark.tier2
def test_the_page_fits_a_phone(ui, report, open_page):
    report(1, WorkerQueue("a", 4, 1, 0, 0, (held(ui, "a", "hello"),)), name="w" * 128)
    phone = open_page(ui, **PHONE)
    phone.goto("/workers")
    phone.get_by_role("button", name="www").click()
    expect(phone.get_by_text("Holds 1 message")).to_be_visible()
    axe(phone)
    assert sideways_pixels(phone) <= 0
