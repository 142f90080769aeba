"""Lists, searches and error groups as the admin UI asks for them, and the arguments that are refused."""

import pytest

from forq_trio.broker.broker import Broker
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.errors import InvalidAttributes, InvalidContent, InvalidQueueName, OutOfRange
from forq_trio.model.limits import SEARCH_TEXT_LENGTH_MAX
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.system import open_broker

QUEUE = "orders"


@pytest.fixture
async def broker(tmp_path):
    async with open_broker(
        f"sqlite:///{tmp_path / 'forq.db'}", durability="normal", disk_reserve_mb=8
    ) as broker:
        yield broker


async def test_a_list_is_read_page_by_page(broker: Broker) -> None:
    await broker.produce_many(QUEUE, [NewMessage(each) for each in "abc"])
    first = await broker.lists.list_messages(QUEUE, "ready", limit=2)
    assert [row.preview for row in first.rows] == ["a", "b"]
    second = await broker.lists.list_messages(QUEUE, "ready", cursor=first.next)
    assert ([row.preview for row in second.rows], second.next) == (["c"], None)


async def test_messages_are_found_and_grouped(broker: Broker) -> None:
    await broker.produce_many(QUEUE, [NewMessage(each, max_attempts=3) for each in "abc"])
    (delivery,) = await broker.receive(QUEUE, wait_ms=0)
    await broker.nack(QUEUE, [delivery.receipt], reason="no stock")
    found = await broker.lists.find_messages(QUEUE, MessageFilter(error="no stock"))
    assert [row.preview for row in found.rows] == ["a"]
    groups = (await broker.lists.error_groups(QUEUE)).groups
    assert [(group.error, group.count) for group in groups] == [(None, 2), ("no stock", 1)]


async def test_bounds_of_a_page_and_of_a_scan(broker: Broker) -> None:
    lists, everything = broker.lists, MessageFilter()
    for call in (
        *(lists.list_messages(QUEUE, "all", limit=limit) for limit in (0, 101)),
        *(lists.find_messages(QUEUE, everything, limit=limit) for limit in (0, 101)),
        *(lists.find_messages(QUEUE, everything, scan_max=most) for most in (0, 10_001)),
        *(lists.error_groups(QUEUE, scan_max=most) for most in (0, 10_001)),
    ):
        with pytest.raises(OutOfRange):
            await call


async def test_names_and_cursors_that_cannot_be(broker: Broker) -> None:
    for call in (
        broker.lists.list_messages("a b", "all"),
        broker.lists.find_messages("a b", MessageFilter()),
        broker.lists.error_groups("a b"),
    ):
        with pytest.raises(InvalidQueueName):
            await call
    with pytest.raises(OutOfRange) as refused:
        await broker.lists.list_messages(QUEUE, "delayed", cursor="1_2_3")
    assert refused.value.field == "cursor"


async def test_filters_that_no_message_could_match(broker: Broker) -> None:
    for wanted, error in (
        (MessageFilter(error="e" * 1_025), OutOfRange),
        (MessageFilter(error="\ud800"), InvalidContent),
        (MessageFilter(above_sequence=-1), OutOfRange),
        (MessageFilter(above_sequence=2**63), OutOfRange),
        (MessageFilter(reason="r" * 1_025), OutOfRange),
        (MessageFilter(reason="\ud800"), InvalidContent),
        (MessageFilter(text="t" * (SEARCH_TEXT_LENGTH_MAX + 1)), OutOfRange),
        (MessageFilter(text="\ud800"), InvalidContent),
        (MessageFilter(attributes={"": "x"}), InvalidAttributes),
        (MessageFilter(attributes={str(n): "x" for n in range(11)}), InvalidAttributes),
    ):
        for call in (
            broker.lists.find_messages(QUEUE, wanted),
            broker.lists.search(QUEUE, wanted),
            broker.redrive_tasks.start(f"{QUEUE}-dlq", wanted),
        ):
            with pytest.raises(error):
                await call
