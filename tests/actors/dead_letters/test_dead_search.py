"""Finding dead letters: each part of the filter, pages without gaps, and what is known of each."""

import pytest

from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.errors import InvalidAttributes, InvalidContent, OutOfRange
from forq_trio.model.limits import SEARCH_TEXT_LENGTH_MAX
from forq_trio.model.messages.types import LEASE_ENDED, REASON_EXPIRED, REASON_MAX_ATTEMPTS, Failure
from support.actors import T0

from .workbench import DEAD, QUEUE, Workbench

DAY_SECONDS = 86_400


async def test_an_empty_filter_finds_all_newest_first(bench: Workbench) -> None:
    ids = await bench.fail("a", "b", "c")
    assert await bench.ids(DEAD) == ids[::-1]


async def test_by_reason(bench: Workbench) -> None:
    (failed,) = await bench.fail("failed")
    expired = (await bench.broker.produce(QUEUE, "expired", ttl_ms=1_000)).id
    await bench.advance(1)
    assert await bench.ids(DEAD, MessageFilter(reason=REASON_MAX_ATTEMPTS)) == [failed]
    assert await bench.ids(DEAD, MessageFilter(reason=REASON_EXPIRED)) == [expired]
    assert await bench.ids(DEAD, MessageFilter(reason="message")) == []


async def test_by_age_both_ends_included(bench: Workbench) -> None:
    ids = []
    for _ in range(3):
        ids += await bench.fail("x")
        await bench.advance(10)
    first, second, third = ids
    at = T0 + 10_000
    assert await bench.ids(DEAD, MessageFilter(since=at)) == [third, second]
    assert await bench.ids(DEAD, MessageFilter(since=at + 1)) == [third]
    assert await bench.ids(DEAD, MessageFilter(until=at)) == [second, first]
    assert await bench.ids(DEAD, MessageFilter(until=at - 1)) == [first]
    assert await bench.ids(DEAD, MessageFilter(since=at, until=at)) == [second]


async def test_the_age_is_that_of_the_dead_letter_not_of_the_message(bench: Workbench) -> None:
    sent = await bench.broker.produce(QUEUE, "old", ttl_ms=60_000)
    await bench.advance(60)
    assert await bench.ids(DEAD, MessageFilter(since=T0 + 60_000)) == [sent.id]


async def test_by_attributes_all_of_them(bench: Workbench) -> None:
    (both,) = await bench.fail("x", attributes={"tenant": "a", "kind": 'it\'s "q"'})
    (one,) = await bench.fail("y", attributes={"tenant": "a"})
    await bench.fail("z")
    assert await bench.ids(DEAD, MessageFilter(attributes={"tenant": "a"})) == [one, both]
    assert await bench.ids(DEAD, MessageFilter(attributes={"tenant": "a", "kind": 'it\'s "q"'})) == [both]
    assert await bench.ids(DEAD, MessageFilter(attributes={"tenant": "A"})) == []
    assert await bench.ids(DEAD, MessageFilter(attributes={"tenants": "a"})) == []


@pytest.mark.parametrize("text", ["50%", "a_b", "Straße", "\\", "'", "ends"])
async def test_by_text_exactly_as_it_is_written(bench: Workbench, text: str) -> None:
    (found,) = await bench.fail(f"before {text} ends")
    await bench.fail("50 percent, axb, STRASSE", "")
    wanted = await bench.ids(DEAD, MessageFilter(text=text))
    assert wanted == [found]


async def test_all_parts_together(bench: Workbench) -> None:
    (early,) = await bench.fail("red sofa", attributes={"tenant": "a"})
    await bench.advance(10)
    (found,) = await bench.fail("red sofa", attributes={"tenant": "a"})
    await bench.fail("red sofa", attributes={"tenant": "b"})
    await bench.fail("blue sofa", attributes={"tenant": "a"})
    wanted = MessageFilter(REASON_MAX_ATTEMPTS, T0 + 5_000, T0 + 15_000, {"tenant": "a"}, "red")
    assert await bench.ids(DEAD, wanted) == [found]
    assert early not in await bench.ids(DEAD, wanted)


async def test_a_search_looks_at_so_many_and_the_next_page_leaves_no_gap(bench: Workbench) -> None:
    ids = await bench.fail(*[f"message {number}" for number in range(25)])
    wanted = MessageFilter(text="message 1")  # 1 and 10 to 19
    found, pages, before = [], [], None
    while True:
        page = await bench.broker.lists.search(DEAD, wanted, before_sequence=before, limit=100, scan_max=7)
        assert page.total == 25
        pages.append(page.searched)
        found += [message.id for message in page.messages]
        before = page.next_before
        if before is None:
            break
    assert (pages[:3], sum(pages)) == ([7, 7, 7], 25)
    assert found == [*ids[19:9:-1], ids[1]]


async def test_a_full_page_ends_the_search_and_the_next_goes_on(bench: Workbench) -> None:
    ids = await bench.fail(*map(str, range(10)))
    first = await bench.broker.lists.search(DEAD, limit=4)
    second = await bench.broker.lists.search(DEAD, before_sequence=first.next_before, limit=100)
    assert [message.id for message in first.messages + second.messages] == ids[::-1]
    assert (first.searched, second.searched, second.next_before) == (4, 6, None)


async def test_an_empty_queue(bench: Workbench) -> None:
    page = await bench.broker.lists.search(DEAD)
    assert (page.messages, page.searched, page.total, page.next_before) == ([], 0, 0, None)


async def test_every_attempt_is_kept_with_its_time_and_reason(bench: Workbench) -> None:
    broker = bench.broker
    sent = await broker.produce(QUEUE, "x", max_attempts=4)
    reasons = ("no stock", None, "no stock yet")
    for reason in reasons:
        await bench.advance(10)
        await bench.nack(await broker.receive(QUEUE, wait_ms=0), reason=reason)
    await broker.receive(QUEUE, lease_ms=5_000, wait_ms=0)
    await bench.advance(5)
    await bench.all_dead(1)
    message = await broker.message(DEAD, sent.id)
    assert message.failures == (
        Failure(1, T0 + 10_000, "no stock"),
        Failure(2, T0 + 20_000, None),
        Failure(3, T0 + 30_000, "no stock yet"),
        Failure(4, T0 + 35_000, LEASE_ENDED),
    )
    assert (message.source_queue, message.source_attempts, message.attempts) == (QUEUE, 4, 0)
    assert (message.failure_reason, message.status) == (REASON_MAX_ATTEMPTS, "ready")
    assert (message.dead_lettered_at, message.first_received_at) == (T0 + 35_000, T0 + 10_000)
    assert message.received_at == T0


async def test_failures_outlive_a_redrive(bench: Workbench) -> None:
    (message_id,) = await bench.fail("x", reason="first time")
    await bench.broker.redrive(DEAD, [message_id])
    again = await bench.broker.message(QUEUE, message_id)
    assert (again.attempts, again.failure_reason, again.source_queue) == (0, None, None)
    await bench.nack(await bench.broker.receive(QUEUE, wait_ms=0), reason="second time")
    await bench.all_dead(1)
    dead = await bench.broker.message(DEAD, message_id)
    assert [failure.reason for failure in dead.failures] == ["first time", "second time"]
    assert dead.last_error == "second time"


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (MessageFilter(reason="r" * 1_025), OutOfRange),
        (MessageFilter(text="t" * (SEARCH_TEXT_LENGTH_MAX + 1)), OutOfRange),
        (MessageFilter(text="\ud800"), InvalidContent),
        (MessageFilter(reason="\ud800"), InvalidContent),
        (MessageFilter(attributes={"": "x"}), InvalidAttributes),
        (MessageFilter(attributes={str(n): "x" for n in range(11)}), InvalidAttributes),
    ],
)
async def test_filters_that_no_message_could_match(bench: Workbench, wanted, error) -> None:
    with pytest.raises(error):
        await bench.broker.lists.search(DEAD, wanted)
    with pytest.raises(error):
        await bench.broker.redrive_tasks.start(DEAD, wanted)


@pytest.mark.parametrize("limit", [0, 101])
async def test_bounds_of_a_page(bench: Workbench, limit: int) -> None:
    with pytest.raises(OutOfRange):
        await bench.broker.lists.search(DEAD, limit=limit)
