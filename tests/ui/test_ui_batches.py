"""The page of batches: how far each is, its members by state, what it has sent, and what a token may see."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from forq_trio import AddressedMessage, NewMessage, NewMessageBatch
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.message_batches.types import MessageBatch, MessageBatchOutcome
from forq_trio.ui.pages.batches import row_of
from support.browser import PHONE, axe, sideways_pixels
from support.in_process_ui import InProcessUi, in_process_ui
from support.real_server import SECRET
from support.ui_http import flat, logged_in

LONG = "imports-of-the-whole-catalogue-of-november-2026"


@pytest.fixture
def ui() -> Iterator[InProcessUi]:
    with in_process_ui() as ui:
        yield ui


@pytest.fixture
def visit(ui) -> Iterator[Callable[..., httpx.Client]]:
    with ExitStack() as opened:
        yield lambda key=SECRET: opened.enter_context(logged_in(ui.ui_url, key))


def opened(ui: InProcessUi, name: str = LONG, members: int = 4) -> None:
    """A batch whose first member is done."""
    then = AddressedMessage("reports", NewMessage("all done"))
    ui.call(ui.broker.open_batch, NewMessageBatch(then=then, on_dead=then), batch_id=name)
    messages = [AddressedMessage("pages", NewMessage(f"m{number}")) for number in range(members)]
    ui.call(ui.broker.add_to_batch, name, messages)
    (first,) = ui.call(ui.broker.receive, "pages")
    ui.call(ui.broker.ack, "pages", first.receipt)


def test_without_a_batch_the_page_says_what_they_are(visit):
    page = flat(visit().get("/batches").text)
    assert "No batch. Programs open them" in page


def test_a_batch_has_a_bar_its_counts_and_what_it_sent(ui, visit):
    opened(ui)
    client = visit()
    page = flat(client.get("/batches").text)
    assert "1 batch waits for members" in page
    assert f'title="{LONG}"' in page
    assert 'aria-label="1 of 4 ended"' in page
    assert 'width="25"' in page
    assert "3 left · 1 done" in page
    assert 'to reports<span class="l2">not sent yet</span>' in page
    ui.call(ui.broker.close_batch, LONG)
    for each in ui.call(ui.broker.receive, "pages", max_messages=3):
        ui.call(ui.broker.ack, "pages", each.receipt)
    sent = ui.call(ui.broker.batch, LONG).then_id
    page = flat(client.get("/batches").text)
    assert "No batch waits" in page
    assert "0 left · 4 done" in page
    assert f'href="/queue/reports/message/{sent}"' in page


def test_the_headline_of_a_page_speaks_of_that_page_alone(ui, visit):
    for number in range(limits.MESSAGE_BATCHES_PAGE_DEFAULT + 1):
        ui.call(ui.broker.open_batch, NewMessageBatch(), batch_id=f"b{number:03}")
        if number:
            ui.call(ui.broker.close_batch, f"b{number:03}")
    page = flat(visit().get("/batches").text)
    assert "No batch on this page waits" in page


def test_what_an_abandoned_batch_would_have_sent_is_not_sent(ui, visit):
    opened(ui)
    ui.call(ui.broker.abandon_batch, LONG)
    page = flat(visit().get("/batches").text)
    assert page.count('to reports<span class="l2">not sent</span>') == 2


def test_an_id_can_be_copied_and_an_inner_batch_names_its_outer_one(ui, visit):
    opened(ui)
    ui.call(ui.broker.open_batch, NewMessageBatch(outer=LONG), batch_id="inner")
    page = flat(visit().get("/batches").text)
    assert page.count("inside of") == 1
    assert f'inside of <span title="{LONG}">imports-of…ber-2026</span>, opened' in page
    for name in ("inner", LONG):
        assert f'data-copy-text="{name}" aria-label="Copy id"' in page


def test_dead_members_are_the_end_of_the_bar(ui, visit):
    opened(ui)
    (second,) = ui.call(ui.broker.receive, "pages")
    ui.call(ui.broker.nack, "pages", second.receipt, final=True)
    page = flat(visit().get("/batches").text)
    assert 'aria-label="2 of 4 ended, 1 dead"' in page
    assert 'class="b" width="50"' in page
    assert 'class="x" x="25" width="25"' in page
    assert "2 left · 1 done · 1 dead" in page


@pytest.mark.parametrize(("done", "dead", "share"), [(1_999, 1, 2), (0, 1, 100), (1, 1, 50), (1, 0, 0)])
def test_the_end_of_the_bar_can_be_seen_and_is_no_longer_than_the_bar(done, dead, share):
    assert row_of(batch_of(done, dead)).dead_share == share


def test_a_token_sees_those_that_it_opened(ui, visit):
    opened(ui)
    token = ui.call(ui.broker.create_token, "reader", [Scope.BROWSE, Scope.PRODUCE]).token
    assert LONG not in visit(token).get("/batches").text


def test_pages_follow_each_other(ui, visit, monkeypatch):
    for number in range(51):
        ui.call(ui.broker.open_batch, NewMessageBatch(), batch_id=f"b{number:02}")
    client = visit()
    first = client.get("/batches").text
    assert (">b50<" in first, ">b00<" in first) == (True, False)
    older = first.partition('href="/batches?before=')[2].partition('"')[0]
    last = client.get(f"/batches?before={older}").text
    assert (">b00<" in last, ">b50<" in last, "Newest" in last) == (True, False, True)
    assert client.get("/batches?before=x").status_code == 200


@pytest.mark.parametrize(
    ("outcome", "dead", "level"),
    [
        ("sent", 0, "fine"),
        ("sent", 2, "attention"),
        ("refused", 0, "broken"),
        ("abandoned", 1, "paused"),
        (None, 1, "attention"),
        (None, 0, "fine"),
    ],
)
def test_the_verdict_says_how_it_is(outcome, dead, level):
    assert row_of(batch_of(1, dead, outcome)).level == level


def batch_of(done: int, dead: int, outcome: MessageBatchOutcome | None = None) -> MessageBatch:
    """A batch that waits for no member."""
    return MessageBatch(
        id="b",
        state="ended" if outcome else "closed",
        outcome=outcome,
        made_at=0,
        made_by=None,
        closed_at=0,
        ended_at=0 if outcome else None,
        expires_at=1,
        outer=None,
        needs="ended",
        left=0,
        done=done,
        removed=0,
        dead=dead,
        then_queue=None,
        then_id=None,
        on_dead_queue=None,
        on_dead_id=None,
        refused=None,
    )


def test_anybody_can_read_it_on_a_phone(ui, open_page):
    opened(ui)
    page = open_page(ui, **PHONE)
    page.goto("/batches")
    axe(page)
    assert sideways_pixels(page) <= 0
