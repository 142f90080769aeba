"""A full disk in the admin UI: a band on every page, and what frees space, on a disk that is really full."""

import sqlite3
from contextlib import closing

import pytest
from playwright.sync_api import expect

from forq_trio import ForqClient, StorageFull
from forq_trio.ui.pages.system import OFFERED_BYTES_MIN
from support.browser import PHONE, axe
from support.empty_file import empty_file
from support.real_server import SECRET, RealServer, real_server
from support.small_disk import mounted
from support.ui_http import Markup, logged_in

pytestmark = pytest.mark.process

LATER_MS = 30_000
REFUSALS = 4


def fill(client: ForqClient, server: RealServer, queue: str) -> None:
    """Send until neither a checkpoint nor a commit that is no send makes space for one more: then it stays full.

    Many refusals in a row are no sign of that: on a busy machine a checkpoint may end after all of them.
    """
    with logged_in(server.ui_url) as operator:
        fields = Markup(operator.get("/system").text).hidden
        refused = 0
        while refused < REFUSALS:
            try:
                client.produce(queue, 100_000 * "x")
                refused = 0
            except StorageFull:
                refused += 1
                answer = operator.post(
                    "/system/jobs/checkpoint/run", data=fields, headers={"Origin": server.ui_url}
                )
                assert answer.status_code < 400, answer.text
                client.release(queue, client.receive(queue, wait_ms=0))


def test_every_page_says_that_sends_are_refused_and_system_says_what_frees_space(tmp_path, open_page) -> None:
    with (
        mounted(tmp_path / "disk", 60) as disk,
        real_server(disk / "forq.db", ui=True, FORQ_DISK_RESERVE_MB="8", FORQ_ENV="local") as server,
        ForqClient(server.url, SECRET, retry_seconds=0) as client,
    ):
        client.produce("orders", "one")
        page = open_page(server)
        page.goto("/")
        band = page.locator(".band")
        expect(band).to_be_hidden()
        fill(client, server, "orders")
        expect(band).to_contain_text("The disk is full, sends are refused", timeout=LATER_MS)
        expect(band).to_contain_text("Receives and acks go on.")
        expect(band).to_contain_text("make space or lower FORQ_DISK_RESERVE_MB")
        axe(band)
        for path in ("/dead", "/queue/orders", "/queue/orders/settings"):
            page.goto(path)
            expect(band).to_be_visible()
        band.get_by_role("link", name="What frees space").click()
        expect(page.locator("[data-live='sys:verdict']")).to_have_text("The disk is full, sends are refused")
        expect(page.locator(".why:visible")).to_contain_text("Sends are accepted again by themselves when")
        expect(page.locator("#frees li").first).to_contain_text("Consume or purge orders")
        expect(band).to_have_count(0)
        axe(page)
        page.get_by_role("button", name="Check now").click()
        expect(page.locator("#toast")).to_have_text("The disk is full, sends are refused")
        key = client.create_token("narrow", ["browse"], queues="other*").token
        with logged_in(server.ui_url, key) as narrow:
            text = narrow.get("/system").text
            assert "The disk is full, sends are refused" in text
            assert "orders" not in text
        client.purge("orders")
        expect(page.locator("#frees")).to_be_hidden(timeout=LATER_MS)
        expect(page.locator("[data-live='sys:verdict']")).to_have_text("All is well", timeout=LATER_MS)
        client.produce("orders", "two")
        page.close()


@pytest.mark.tier2
def test_on_a_phone_too(tmp_path, open_page) -> None:
    with (
        mounted(tmp_path / "disk", 60) as disk,
        real_server(disk / "forq.db", ui=True, FORQ_DISK_RESERVE_MB="8", FORQ_ENV="local") as server,
        ForqClient(server.url, SECRET, retry_seconds=0) as client,
    ):
        fill(client, server, "orders")
        page = open_page(server, **PHONE)
        for path in ("/", "/system"):
            page.goto(path)
            expect(page.get_by_text("The disk is full, sends are refused").last).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            axe(page)
        page.close()


@pytest.mark.tier2
def test_the_button_that_compacts_is_beside_what_is_free(tmp_path, open_page) -> None:
    path = empty_file(tmp_path)
    with closing(sqlite3.connect(path)) as file:
        file.executescript(
            f"CREATE TABLE gone AS SELECT zeroblob({OFFERED_BYTES_MIN}) AS content; DROP TABLE gone"
        )
    with real_server(path, ui=True, FORQ_ENV="local") as server, ForqClient(server.url, SECRET) as client:
        while client.compaction_info().free_bytes < OFFERED_BYTES_MIN:
            pass
        for options in ({}, PHONE):
            page = open_page(server, **options)
            page.goto("/system")
            button = page.get_by_role("button", name="Compact", exact=True)
            boxes = [each.bounding_box() for each in (page.locator("[data-live='sys:free-pages']"), button)]
            middles = [box["y"] + box["height"] / 2 for box in boxes]
            assert abs(middles[0] - middles[1]) < 3
            assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
            axe(page)
            page.close()
