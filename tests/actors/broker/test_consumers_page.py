"""The consumers of all queues, page by page: only those on it are described; and those of a queue that is deleted."""

import pytest

from forq_trio.broker.broker import Broker
from forq_trio.model.errors import QueueNotEmpty


async def test_only_the_consumers_of_a_page_are_described(broker: Broker, monkeypatch):
    for number in range(20):
        await broker.open_consumer(f"queue-{number:02}", "c")
    described = []
    info = broker.leases.info
    monkeypatch.setattr(broker.leases, "info", lambda each: described.append(each) or info(each))

    def even(queue: str) -> bool:
        return int(queue[-2:]) % 2 == 0

    page, after = broker.leases.page("", 2, even)
    assert [each.queue for each in page] == ["queue-00", "queue-02"]
    page, after = broker.leases.page(after or "", 8, even)
    assert [each.queue for each in page] == [f"queue-{number:02}" for number in range(4, 20, 2)]
    assert after is None
    assert len(described) == 10


async def test_a_queue_goes_with_its_consumers_but_not_while_one_has_messages(broker: Broker):
    for queue in "ab":
        await broker.produce(queue, "m")
        opened = await broker.open_consumer(queue, "c")
        await broker.open_consumer(queue, "idle")
        await broker.lease(queue, "c", opened.generation, 1)
    with pytest.raises(QueueNotEmpty):
        await broker.delete_queue("a")
    assert len(await broker.consumers("a")) == 2
    opened = await broker.consumer("a", "c")
    await broker.acknowledge("a", "c", opened.generation, 1)
    await broker.delete_queue("a")
    assert await broker.consumers("a") == []
    assert len(await broker.consumers("b")) == 2
