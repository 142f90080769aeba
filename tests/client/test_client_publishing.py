"""Stages, publications and exports through either client and a real server."""

import pytest

from forq_trio import (
    ExportRange,
    ForqClient,
    InvalidName,
    NewMessage,
    OutOfRange,
    PublicationNotFound,
    Stage,
    Staged,
    StageMissing,
)
from forq_trio.client.pages import get_page
from forq_trio.model import limits
from support.real_server import SECRET

from .conftest import Call


@pytest.fixture(scope="module")
def call(either: Call) -> Call:
    """No face publishes, so both clients do."""
    return either


def test_a_stage_from_its_pages_to_the_export(call: Call, queue: str):
    pages = [[NewMessage(f"{page}.{n} ö", priority=n) for n in range(300)] for page in (0, 1)]
    sizes = [sum(len(message.content.encode()) for message in page) for page in pages]
    for number in (1, 0, 1):
        assert call("stage", queue, "s", number, pages[number]) == Staged(300, sizes[number])
    stages = [Stage(queue, "s", 2)]
    with pytest.raises(PublicationNotFound):
        call("publication", queue)
    published = call("publish", queue, 3, stages)
    assert (published.published, published.messages) == (True, 600)
    again = call("publish", queue, 3, stages)
    assert (again.published, again.messages) == (False, None)
    assert (call("publication", queue).app, call("publication", queue).version) == (queue, 3)
    exported, after = [], 0
    while after is not None:
        page = call("export", queue, after=after, limit=250)
        exported += page.messages
        after = page.next
    sent = [message for page in pages for message in page]
    assert [(each.content, each.priority) for each in exported] == [
        (each.content, each.priority) for each in sent
    ]
    assert {each.state for each in exported} == {"ready"}
    partitions = call("export_partitions", queue, 2)
    middle, last = exported[299].sequence, exported[-1].sequence
    assert partitions.messages == 600
    assert partitions.bounds == [ExportRange(0, middle), ExportRange(middle, last)]
    assert call("export", queue, after=middle, until=last).messages == exported[300:]


def test_what_is_refused_is_the_brokers_error(call: Call, queue: str):
    with pytest.raises(OutOfRange) as caught:
        call("stage", queue, "s", 0, [NewMessage("a"), NewMessage("b", priority=-1)])
    assert caught.value.field == "lines[1].priority"
    call("stage", queue, "s", 0, [NewMessage("a")])
    call("discard_stage", queue, "s")
    with pytest.raises(StageMissing):
        call("publish", queue, 1, [Stage(queue, "s", 1)])
    for name in ("", ".", "a b", "a/b"):
        with pytest.raises(InvalidName):
            call("stage", queue, name, 0, [])


def test_a_page_as_it_came(url: str, queue: str):
    with ForqClient(url, SECRET) as client:
        client.produce_many(queue, [NewMessage("a"), NewMessage("b")])
        first = get_page(client, f"/api/v1/queues/{queue}/export?limit=1")
        assert first.headers["content-type"] == "application/x-ndjson"
        assert first.next is not None
        rest = get_page(client, f"/api/v1/queues/{queue}/export?after={first.next}")
        assert rest.next is None
        assert b'"content":"b"' in rest.lines


def test_clients_repeat_a_publication_that_is_moving(call: Call, queue: str, monkeypatch):
    monkeypatch.setattr(limits, "PUBLISH_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(limits, "PUBLISH_STEP_MESSAGES_MAX", 10)
    call("stage", queue, "s", 0, [NewMessage(f"{number}") for number in range(100)])
    published = call("publish", queue, 1, [Stage(queue, "s", 1)], once=True)
    assert (published.published, published.messages, published.moving) == (True, 100, False)
    assert call("queue_stats", queue).ready == 100
