"""Finished messages are discarded, and sent again, in the same way through every face."""

from collections.abc import AsyncIterator

import pytest

from forq_trio import HistoryFilter, MessageNotFound, Produced

from .face import Face
from .running import open_face

NO_ID = "01890a5d-ac96-774b-bcce-b302099a8057"


@pytest.fixture
async def face(kind: str, url: str) -> AsyncIterator[Face]:
    async with open_face(kind, url, history=True) as face:
        yield face


async def test_a_discarded_message_is_sent_again(face: Face) -> None:
    sent = await face.send("x", attributes={"k": "v"}, priority=7, group="g")
    assert await face.discard((await face.take()).receipt, reason="no stock") == [True]
    (kept,) = (await face.methods.search_history("q", HistoryFilter(outcome="discarded"))).messages
    assert (kept.id, kept.reason, kept.last_error) == (sent.id, "consumer", "no stock")
    missing, again, odd = await face.methods.requeue_finished("q", [NO_ID, sent.id, "odd"])
    assert isinstance(missing, MessageNotFound)
    assert isinstance(again, Produced)
    assert again.id != sent.id
    assert not isinstance(odd, Produced)
    assert odd.code.startswith("bad_request.")
    delivery = await face.take()
    assert (delivery.id, delivery.content, delivery.attempts) == (again.id, "x", 1)
    assert (delivery.attributes, delivery.priority, delivery.group) == ({"k": "v"}, 7, "g")
    assert (await face.methods.finished_message("q", sent.id)).outcome == "discarded"


async def test_a_former_dead_letter_goes_to_the_queue_that_it_came_from(face: Face) -> None:
    sent = await face.send("x")
    assert await face.nack((await face.take()).receipt, reason="bad", final=True) == [True]
    (deleted,) = await face.methods.delete_dead_letters("q-dlq", [sent.id])
    assert deleted.ok
    (again,) = await face.methods.requeue_finished("q-dlq", [sent.id])
    assert isinstance(again, Produced)
    assert (await face.take()).content == "x"


async def test_so_does_one_from_a_queue_that_only_a_setting_makes_one_of_dead_letters(face: Face) -> None:
    await face.configure(dead_letter_queue="graves", max_attempts=1)
    sent = await face.send("x")
    assert await face.nack((await face.take()).receipt) == [True]
    assert await face.ack((await face.take("graves")).receipt, queue="graves") == [True]
    (again,) = await face.methods.requeue_finished("graves", [sent.id])
    assert isinstance(again, Produced)
    assert (await face.take()).id == again.id


async def test_what_was_sent_to_no_other_queue_stays(face: Face) -> None:
    assert await face.methods.requeue_finished("q", []) == []
    assert await face.has_nothing()


async def test_a_reason_is_needed(face: Face) -> None:
    await face.send()
    receipt = (await face.take()).receipt
    for reason in ("", "x" * 1_025):
        with pytest.raises(Exception, match="reason"):
            await face.discard(receipt, reason=reason)
    assert (await face.counts()).processing == 1
