"""GET /stats (S1): request counters by endpoint and status since the start, on a page that needs nothing else."""

import re
from html.parser import HTMLParser

from forq_trio.http.sasquatch_api.page import EndpointRow, render
from forq_trio.http.sasquatch_api.routes import ENDPOINTS

from .harness import START_MS, Api


class Rows(HTMLParser):
    """The text of every table row, and every address the page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[str] = []
        self.addresses: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append("")
        if tag not in ("meta", "link"):
            self.open.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "tr" in self.open:
            self.rows[-1] += f" {data.strip()}"


def parsed(html: str) -> Rows:
    rows = Rows()
    rows.feed(html)
    assert rows.open == []
    return rows


async def page(api: Api) -> str:
    response = await api.call("stats", method="GET")
    assert (response.status, response.content_type) == (200, b"text/html; charset=utf-8")
    assert (b"cache-control", b"no-store") in response.headers
    return response.body.decode()


async def counts(api: Api) -> dict[str, str]:
    """What the page says of each endpoint: total, then its statuses."""
    rows = [re.sub(r"\s+", " ", row).strip() for row in parsed(await page(api)).rows[1:]]
    return {" ".join(row.split()[:2]): " ".join(row.split()[2:]) for row in rows}


async def test_every_answer_is_counted(api: Api):
    """Good ones, errors, wrong methods and wrong keys, each with its endpoint."""
    before = await counts(api)
    assert list(before) == list(ENDPOINTS)
    assert set(before.values()) == {"0"}
    for _ in range(3):
        await api.send()
    await api.error("send", b"{")
    await api.error("send", method="PUT")
    await api.call("send", headers={})
    await api.receive()
    after = await counts(api)
    assert after["POST /send"] == "6 200 3 400 1 401 1 405 1"
    assert after["POST /receive"] == "1 200 1"
    assert after["GET /stats"] == "1 200 1"
    assert after["GET /queues"] == "0"


async def test_counters_are_reset_by_a_restart(api: Api):
    await api.send()
    api.serve()
    assert (await counts(api))["POST /send"] == "0"


def test_the_page_needs_nothing_else():
    html = render([EndpointRow("POST /send", {200: 3})], 10.0, START_MS)
    found = parsed(html)
    assert found.addresses == []
    assert "<script" not in html
    assert "url(" not in html
    assert "prefers-color-scheme: dark" in html


def test_totals_rate_and_uptime():
    rows = [EndpointRow("POST /send", {200: 1_000, 503: 1}), EndpointRow("GET /queues", {200: 999})]
    html = render(rows, 100_000.0, START_MS)
    for text in ("2,000", "0.02", "<dd>1</dd>", "1 d 3 h", "2023-11-14 22:13:20 UTC"):
        assert text in html
    assert "<dd>0 s</dd>" in render([], 0.0, START_MS)
