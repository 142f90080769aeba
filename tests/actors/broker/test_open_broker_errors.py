"""Errors of an application that embeds the queue come out of `open_broker` as they were raised."""

import pytest

from forq_trio import open_broker
from forq_trio.model.errors import InvalidQueueName, OutOfRange


async def test_what_the_body_raises_can_be_caught_outside_without_groups() -> None:
    with pytest.raises(InvalidQueueName):
        async with open_broker("memory:") as broker:
            await broker.produce("not a name", "x")


async def test_an_error_in_the_body_still_finishes_what_was_sent(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"

    class Unrelated(Exception):
        pass

    async def send_and_fail() -> None:
        async with open_broker(url) as broker:
            await broker.produce("q", "sent")
            raise Unrelated

    with pytest.raises(Unrelated):
        await send_and_fail()
    async with open_broker(url) as broker:
        assert (await broker.queue_stats("q")).ready == 1


async def test_a_reserve_holds_what_acks_need_while_there_is_a_history(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"
    for history, refused in ((True, 31), (False, 7)):
        with pytest.raises(OutOfRange, match=f"disk_reserve_mb.* must be between {refused + 1} and"):
            async with open_broker(url, history=history, disk_reserve_mb=refused):
                pass
        async with open_broker(url, history=history, disk_reserve_mb=refused + 1) as broker:
            await broker.produce("q", "x")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["queue.db", "queue.db.lock"]
