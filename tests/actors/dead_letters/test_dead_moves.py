"""Moving, deleting and editing single dead letters."""

import uuid

import pytest

from forq_trio.model.errors import (
    ContentTooLarge,
    DeadLettersOnly,
    InvalidAttributes,
    InvalidQueueName,
    MessageNotFound,
    OutOfRange,
)
from forq_trio.model.limits import CONTENT_BYTES_MAX, MOVE_BATCH_MAX
from support.actors import T0, until
from support.results import oks

from .workbench import DEAD, QUEUE, Workbench

UNKNOWN = str(uuid.UUID(int=7))
DAY_MS = 86_400_000


async def test_f15_a_redriven_message_starts_anew_where_it_came_from(bench: Workbench) -> None:
    first, second = await bench.fail("first", "second", attributes={"a": "1"}, priority=7)
    later = await bench.broker.produce(QUEUE, "later", priority=7)
    await bench.advance(60)
    assert oks(await bench.broker.redrive(DEAD, [first])) == [True]
    assert await bench.ids(DEAD) == [second]
    message = await bench.broker.message(QUEUE, first)
    assert (message.status, message.attempts, message.attributes) == ("ready", 0, {"a": "1"})
    assert (message.process_after, message.expires_after) == (T0 + 60_000, T0 + 60_000 + DAY_MS)
    assert (message.received_at, message.dead_lettered_at, message.source_attempts) == (T0, None, None)
    received = await bench.broker.receive(QUEUE, max_messages=2, wait_ms=0)
    assert [delivery.id for delivery in received] == [first, later.id]  # it kept its place


async def test_selected_ones_each_with_its_result(bench: Workbench) -> None:
    ids = await bench.fail(*map(str, range(5)))
    outcome = await bench.broker.redrive(DEAD, [ids[3], UNKNOWN, ids[0]])
    assert oks(outcome) == [True, False, True]
    assert set(await bench.ids(QUEUE)) == {ids[0], ids[3]}
    assert await bench.ids(DEAD) == [ids[4], ids[2], ids[1]]


async def test_to_another_queue(bench: Workbench) -> None:
    (message_id,) = await bench.fail("x")
    assert oks(await bench.broker.redrive(DEAD, [message_id], target="repair")) == [True]
    assert (await bench.broker.message("repair", message_id)).content == "x"
    assert (bench.count(DEAD), bench.count(QUEUE)) == (0, 0)


async def test_not_back_to_the_dead_letter_queue_itself(bench: Workbench) -> None:
    (message_id,) = await bench.fail("x")
    assert oks(await bench.broker.redrive(DEAD, [message_id], target=DEAD)) == [False]
    assert await bench.ids(DEAD) == [message_id]


async def test_a_message_in_process_is_left_to_its_consumer(bench: Workbench) -> None:
    held, free = await bench.fail("held", "free")
    (delivery,) = await bench.broker.receive(DEAD, wait_ms=0)
    assert delivery.id == held
    assert oks(await bench.broker.redrive(DEAD, [held, free])) == [False, True]
    assert oks(await bench.broker.delete_dead_letters(DEAD, [held])) == [False]
    with pytest.raises(MessageNotFound):
        await bench.broker.resubmit(DEAD, held, remove=True)
    assert oks(await bench.broker.ack(DEAD, [delivery.receipt])) == [True]


async def test_a_message_that_came_from_nowhere_needs_a_target(bench: Workbench) -> None:
    await bench.broker.configure(QUEUE, dead_letter_queue="morgue")
    sent = await bench.broker.produce("morgue", "sent here")
    assert oks(await bench.broker.redrive("morgue", [sent.id])) == [False]
    with pytest.raises(MessageNotFound):
        await bench.broker.resubmit("morgue", sent.id)
    assert oks(await bench.broker.redrive("morgue", [sent.id], target="repair")) == [True]


async def test_a_waiting_consumer_gets_what_is_redriven(bench: Workbench, nursery) -> None:
    (message_id,) = await bench.fail("x")
    got = []

    async def wait() -> None:
        got.extend(await bench.broker.receive(QUEUE, wait_ms=30_000))

    nursery.start_soon(wait)
    await bench.until_waiting(QUEUE)
    await bench.broker.redrive(DEAD, [message_id])
    await until(lambda: bool(got))
    assert [delivery.id for delivery in got] == [message_id]


async def test_deleted_for_good(bench: Workbench) -> None:
    first, second = await bench.fail("a", "b")
    assert oks(await bench.broker.delete_dead_letters(DEAD, [first, UNKNOWN])) == [True, False]
    assert (await bench.ids(DEAD), bench.count(QUEUE)) == ([second], 0)


async def test_an_edited_copy_beside_the_original(bench: Workbench) -> None:
    (message_id,) = await bench.fail("typo", attributes={"a": "1", "b": "2"}, priority=9, group="g")
    copy = await bench.broker.resubmit(DEAD, message_id, content="fixed", attributes={"a": "3"})
    assert copy.id != message_id
    message = await bench.broker.message(QUEUE, copy.id)
    assert (message.content, message.attributes) == ("fixed", {"a": "3"})
    assert (message.priority, message.group, message.max_attempts) == (9, "g", 1)
    assert (message.failures, message.first_received_at, message.attempts) == ((), None, 0)
    original = await bench.broker.message(DEAD, message_id)
    assert (original.content, original.attributes) == ("typo", {"a": "1", "b": "2"})


async def test_an_edited_copy_instead_of_the_original(bench: Workbench) -> None:
    (message_id,) = await bench.fail("x", attributes={"a": "1"})
    copy = await bench.broker.resubmit(DEAD, message_id, attributes={}, target="repair", remove=True)
    message = await bench.broker.message("repair", copy.id)
    assert message.content == "x"
    assert not message.attributes
    assert (bench.count(DEAD), bench.count(QUEUE), bench.count("repair")) == (0, 0, 1)


async def test_a_refused_copy_removes_nothing(bench: Workbench) -> None:
    (message_id,) = await bench.fail("x")
    with pytest.raises(ContentTooLarge):
        await bench.broker.resubmit(DEAD, message_id, content="x" * (CONTENT_BYTES_MAX + 1), remove=True)
    with pytest.raises(InvalidAttributes):
        await bench.broker.resubmit(DEAD, message_id, attributes={"": "x"}, remove=True)
    with pytest.raises(InvalidQueueName):
        await bench.broker.resubmit(DEAD, message_id, target="no queue", remove=True)
    with pytest.raises(MessageNotFound):
        await bench.broker.resubmit(DEAD, UNKNOWN, remove=True)
    assert await bench.ids(DEAD) == [message_id]


async def test_a_dead_letter_queue_by_setting(bench: Workbench) -> None:
    broker = bench.broker
    with pytest.raises(DeadLettersOnly):
        broker.known.check_dead_letter_queue("morgue")
    await broker.configure(QUEUE, dead_letter_queue="morgue")
    ids = await bench.fail("a", "b", dead="morgue")
    assert (await broker.message("morgue", ids[0])).source_queue == QUEUE
    assert oks(await broker.redrive("morgue", ids[:1])) == [True]
    task = await broker.redrive_tasks.start("morgue")
    await broker.redrive_tasks.wait(task.id)
    assert (bench.count("morgue"), bench.count(QUEUE)) == (0, 2)


async def test_other_queues_are_refused(bench: Workbench) -> None:
    broker = bench.broker
    sent = await broker.produce(QUEUE, "x")
    with pytest.raises(DeadLettersOnly):
        await broker.redrive(QUEUE, [sent.id], target="repair")
    with pytest.raises(DeadLettersOnly):
        await broker.delete_dead_letters(QUEUE, [sent.id])
    with pytest.raises(DeadLettersOnly):
        await broker.resubmit(QUEUE, sent.id, remove=True)
    with pytest.raises(DeadLettersOnly):
        await broker.redrive_tasks.start(QUEUE, target="repair")
    assert await bench.ids(QUEUE) == [sent.id]


async def test_bounds_of_a_move(bench: Workbench) -> None:
    for change in (bench.broker.redrive, bench.broker.delete_dead_letters):
        with pytest.raises(OutOfRange):
            await change(DEAD, [UNKNOWN] * (MOVE_BATCH_MAX + 1))
        codes = [result.code for result in await change(DEAD, ["nonsense", UNKNOWN])]
        assert codes == ["bad_request.messageId.invalid", "not_found.message"]
        assert await change(DEAD, []) == []
