"""A page of the consumers of all queues: only those on it are described."""

from forq_trio.broker.broker import Broker


async def test_only_the_consumers_of_a_page_are_described(broker: Broker, monkeypatch):
    for number in range(20):
        await broker.open_consumer(f"queue-{number:02}", "c")
    described = []
    info = broker._consumer_info
    monkeypatch.setattr(broker, "_consumer_info", lambda each: described.append(each) or info(each))

    def even(queue: str) -> bool:
        return int(queue[-2:]) % 2 == 0

    page, after = broker.consumers_page("", 2, even)
    assert [each.queue for each in page] == ["queue-00", "queue-02"]
    page, after = broker.consumers_page(after or "", 8, even)
    assert [each.queue for each in page] == [f"queue-{number:02}" for number in range(4, 20, 2)]
    assert after is None
    assert len(described) == 10
