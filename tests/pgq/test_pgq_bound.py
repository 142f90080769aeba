"""A queue that is bound to a table: what a broker does with it is done on the table, beside pgq's programs."""

import pytest

from forq_trio import pgq
from forq_trio.jobs.metrics import QueueGauges
from forq_trio.model import limits
from forq_trio.model.commands import RedrivePolicy
from forq_trio.model.errors import (
    DatabaseRefused,
    FeatureUnavailable,
    InvalidPayload,
    InvalidRequest,
    InvalidSetting,
    MalformedReceipt,
    MessageNotFound,
    NoTable,
    QueueBound,
    QueueNotBound,
    QueueNotEmpty,
    QueueNotFound,
    ReceiptNotCurrent,
    WrongTable,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.settings import QueueTable
from forq_trio.model.schedules.types import NewSchedule
from forq_trio.monitor.ages import Ages
from forq_trio.pgq import history
from forq_trio.system import open_broker
from forq_trio.telemetry.counters import Counters
from pgq.conftest import NUMBERS
from pgq.rows import Rows

# Binding


async def test_a_queue_is_bound_and_unbound(broker, table) -> None:
    queue = f"bound{next(NUMBERS)}"
    assert await broker.bind(queue, table) == QueueTable("pgq", table)
    assert await broker.bound_table(queue) == QueueTable("pgq", table)
    assert (await broker.settings(queue)).settings.table == QueueTable("pgq", table)
    assert await broker.bind(queue, table) == QueueTable("pgq", table)
    await broker.unbind(queue)
    with pytest.raises(QueueNotBound):
        await broker.bound_table(queue)
    with pytest.raises(QueueNotBound):
        await broker.unbind(queue)


async def test_what_a_table_lacks_is_named(broker, connection, table) -> None:
    with pytest.raises(NoTable):
        await broker.bind("q", "No/Such")
    Rows(connection, table).run("ALTER TABLE {} DROP COLUMN locked_until, DROP COLUMN error_detail")
    with pytest.raises(WrongTable, match="locked_until, error_detail") as caught:
        await broker.bind("q", table)
    assert caught.value.columns == ("locked_until", "error_detail")


async def test_no_queue_is_bound_that_has_messages_or_other_settings(broker, table) -> None:
    queue = f"full{next(NUMBERS)}"
    await broker.produce(queue, "x")
    with pytest.raises(QueueNotEmpty):
        await broker.bind(queue, table)
    await broker.purge(queue)
    await broker.configure(queue, delay_ms=5)
    with pytest.raises(InvalidSetting, match="delay_ms"):
        await broker.bind(queue, table)
    await broker.configure(queue, delay_ms=None, lease_ms=9_000, max_attempts=4)
    await broker.pause(queue)
    with pytest.raises(InvalidSetting, match="paused"):
        await broker.bind(queue, table)
    await broker.resume(queue)
    await broker.bind(queue, table)


async def test_a_table_is_bound_to_one_queue(broker, queue, table) -> None:
    with pytest.raises(QueueBound, match=queue):
        await broker.bind(f"{queue}-too", table)


async def test_queues_of_dead_letters_are_not_bound(broker, table) -> None:
    await broker.configure("with-letters", dead_letter_queue="letters")
    for queue in ("letters", "with-letters-dlq"):
        with pytest.raises(QueueBound):
            await broker.bind(queue, table)
    await broker.reset_settings("with-letters")


async def test_only_postgresql_has_tables(table) -> None:
    async with open_broker("memory:") as broker:
        with pytest.raises(FeatureUnavailable):
            await broker.bind("q", table)
        with pytest.raises(QueueNotBound):
            await broker.bound_table("q")


async def test_a_binding_outlives_its_process(broker, queue, table, pgq_url) -> None:
    async with open_broker(pgq_url) as other:
        assert await other.bound_table(queue) == QueueTable("pgq", table)
        await other.produce(queue, "{}")
    assert len(await broker.receive(queue, wait_ms=0)) == 1


# Sends and receives


async def test_what_is_sent_is_a_row(broker, queue, rows) -> None:
    produced = await broker.produce(queue, '{"a": 1}', attributes={"tier": "gold"})
    row = rows.one()
    assert (str(row["id"]), row["payload"], row["metadata"]) == (produced.id, {"a": 1}, {"tier": "gold"})
    assert (row["consumed_count"], row["processed_at"], row["scheduled_for"]) == (0, None, None)


async def test_a_delay_is_a_time_of_the_row(broker, queue, theirs) -> None:
    await broker.produce(queue, "{}", delay_ms=limits.HOUR_MS)
    assert theirs.one()["scheduled_for"] > theirs.one()["created_at"]
    assert await broker.receive(queue, wait_ms=0) == []
    assert theirs.claim() == []


async def test_of_several_those_that_are_no_objects_are_refused_alone(broker, queue, rows) -> None:
    results = await broker.produce_many(
        queue,
        [NewMessage('{"n": 1}'), NewMessage("[]"), NewMessage('{"n": 2}', group="g"), NewMessage('{"n": 3}')],
    )
    assert [type(each).__name__ for each in results] == [
        "Produced",
        "InvalidPayload",
        "InvalidRequest",
        "Produced",
    ]
    assert [row["payload"]["n"] for row in rows.all()] == [1, 3]
    with pytest.raises(InvalidPayload):
        await broker.produce(queue, "text")
    for option in ({"priority": 1}, {"ttl_ms": 5}, {"deduplication_id": "d"}, {"max_attempts": 2}):
        with pytest.raises(InvalidRequest, match=next(iter(option))):
            await broker.produce(queue, "{}", **option)
    assert len(rows.all()) == 2
    deep, _ = await broker.produce_many(queue, [NewMessage('{"":' * 999 + "4" + "}" * 999), NewMessage("{}")])
    assert isinstance(deep, InvalidPayload)


async def test_what_a_table_refuses_is_refused_alone(broker, queue, connection, rows) -> None:
    rows.run("ALTER TABLE {} ADD CHECK ((payload ->> 'n')::numeric < 9)")
    sent = [NewMessage(each) for each in ('{"n": 1}', '{"n": 9}', '{"n": 2}', '{"n": "x"}', '{"n": 3}')]
    results = await broker.produce_many(queue, sent)
    found = ["Produced", "DatabaseRefused", "Produced", "DatabaseRefused", "Produced"]
    assert [type(each).__name__ for each in results] == found
    assert [row["payload"]["n"] for row in rows.all()] == [1, 2, 3]
    assert [str(row["id"]) for row in rows.all()] == [each.id for each in results[::2]]
    with pytest.raises(DatabaseRefused):
        await broker.produce(queue, '{"n": 9}')


async def test_a_name_is_the_name_of_one_table(broker, connection) -> None:
    """Text of others passes no escapes: 50%% off is not 50% off."""
    for name in ("100%", "50%% off", "50% off"):
        pgq.create_table(connection, name)
        await broker.bind(f"bound{len(name)}", name)
    await broker.produce("bound8", "{}")
    counts = {
        name: sum(pgq.history.counts(connection, name).values()) for name in ("100%", "50%% off", "50% off")
    }
    assert counts == {"100%": 0, "50%% off": 1, "50% off": 0}
    (delivery,) = await broker.receive("bound8", wait_ms=0)
    assert await broker.receive("bound7", wait_ms=0) == await broker.receive("bound4", wait_ms=0) == []
    assert (await broker.ack("bound8", delivery)).ok
    for name in counts:
        assert pgq.drop_table(connection, name)


async def test_a_delivery_is_a_claim_of_the_row(broker, queue, theirs) -> None:
    id = theirs.publish({"n": 1}, {"a": "b"})
    (delivery,) = await broker.receive(queue, wait_ms=0, lease_ms=60_000)
    assert (delivery.id, delivery.content, delivery.attempts) == (str(id), '{"n": 1}', 1)
    assert delivery.attributes == {"a": "b"}
    assert theirs.claim() == []
    assert (await broker.ack(queue, delivery.receipt)).ok
    row = theirs.one()
    assert row["processed_at"] is not None
    assert (row["locked_until"], row["error_detail"]) == (None, None)


async def test_settlements(broker, queue, rows) -> None:
    for _ in range(4):
        rows.add({})
    first, second, third, fourth = await broker.receive(queue, max_messages=4, wait_ms=0)
    assert (await broker.nack(queue, first, reason="broke")).ok
    assert (await broker.discard(queue, second, reason="useless")).ok
    assert (await broker.release(queue, third)).ok
    extended = await broker.extend(queue, fourth, 3_600_000)
    by_id = {str(row["id"]): row for row in rows.all()}
    assert (by_id[first.id]["error_detail"], by_id[first.id]["processed_at"]) == ("broke", None)
    assert by_id[second.id]["error_detail"] == "useless"
    assert by_id[second.id]["processed_at"] is not None
    assert by_id[third.id]["consumed_count"] == 0
    assert abs(by_id[fourth.id]["locked_until"].timestamp() * 1_000 - extended.lease_until) <= 1


async def test_a_receipt_that_is_not_current_or_none_is_refused_alone(broker, queue, rows) -> None:
    rows.add({})
    rows.add({})
    one, two = await broker.receive(queue, max_messages=2, wait_ms=0)
    await broker.ack(queue, one)
    old = two.receipt.replace(two.id, one.id)
    results = await broker.ack(queue, ["none", one.receipt, old, two.receipt, "a|b|c|d"])
    codes = [
        MalformedReceipt.code,
        ReceiptNotCurrent.code,
        ReceiptNotCurrent.code,
        None,
        MalformedReceipt.code,
    ]
    assert [result.code for result in results] == codes


async def test_a_receipt_that_comes_twice_is_settled_once(broker, queue, rows) -> None:
    rows.add({})
    (delivery,) = await broker.receive(queue, wait_ms=0)
    results = await broker.ack(queue, [delivery, delivery])
    assert [(each.receipt, each.ok) for each in results] == [(delivery.receipt, True)] * 2
    assert await broker.ack(queue, []) == []


async def test_receipts_of_any_queue_are_not_those_of_a_table(broker, queue, rows) -> None:
    rows.add({})
    (delivery,) = await broker.receive(queue, wait_ms=0)
    for settled in (broker.ack(None, [delivery]), broker.extend(None, [delivery], 1_000)):
        assert [each.code for each in await settled] == [MalformedReceipt.code]
    assert rows.one()["processed_at"] is None


async def test_more_receipts_than_a_command_names_are_settled(broker, queue, rows) -> None:
    for _ in range(limits.PART_MESSAGES_MAX + 1):
        rows.add({})
    found = []
    while delivered := await broker.receive(queue, max_messages=100, wait_ms=0):
        found += delivered
    assert len(found) == limits.PART_MESSAGES_MAX + 1
    results = await broker.extend(queue, found, 60_000)
    assert [each.receipt for each in results] == [each.receipt for each in found]
    assert all(each.ok and each.lease_until for each in results)
    assert all(each.ok for each in await broker.ack(queue, found))


async def test_the_last_attempt_is_the_queues(broker, queue, rows) -> None:
    rows.add({})
    await broker.configure(queue, max_attempts=2)
    for attempt in (1, 2):
        (delivery,) = await broker.receive(queue, wait_ms=0)
        assert delivery.attempts == attempt
        result = await broker.nack(queue, delivery, reason="broke", max_attempts=9)
        assert result.failed == (attempt == 2)
    assert rows.one()["processed_at"] is not None
    assert rows.one()["error_detail"] == "broke"


async def test_forqs_own_calls_settle_by_receipt(broker, queue, rows) -> None:
    rows.add({})
    (delivery,) = await broker.receive(queue, wait_ms=0)
    with pytest.raises(QueueBound):
        await broker.ack_message(queue, delivery.id, None)
    for malformed in ("none", "1700000000000"):  # the latter is one that Forq itself gave
        with pytest.raises(MalformedReceipt):
            await broker.ack_message(queue, delivery.id, malformed)
    await broker.nack_message(queue, delivery.id, delivery.receipt)
    with pytest.raises(MessageNotFound):
        await broker.ack_message(queue, delivery.id, delivery.receipt)
    (delivery,) = await broker.receive(queue, wait_ms=0)
    await broker.ack_message(queue, delivery.id, delivery.receipt)
    assert rows.one()["processed_at"] is not None


async def test_one_message_is_not_settled_by_the_receipt_of_another(broker, queue, rows) -> None:
    rows.add({})
    other = rows.add({})
    (delivery, _) = await broker.receive(queue, max_messages=2, wait_ms=0)
    with pytest.raises(MessageNotFound):
        await broker.ack_message(queue, str(other), delivery.receipt)
    assert [row["processed_at"] for row in rows.all()] == [None, None]


# Looks


async def test_counts_are_those_of_the_table(broker, queue, rows) -> None:
    rows.add({})
    rows.add({}, scheduled_for="now() + interval '1 h'")
    rows.add({}, consumed_count="5")
    rows.add({}, locked_until="now() + interval '1 h'")
    rows.add({}, processed_at="now()")
    found = await broker.queue_stats(queue)
    assert (found.ready, found.delayed, found.failed, found.processing, found.held) == (1, 1, 1, 1, 0)
    assert queue in [each.queue for each in await broker.queues()]


async def test_lists_and_figures_have_the_counts_of_the_last_look(broker, queue, rows) -> None:
    rows.add({})
    rows.add({}, locked_until="now() + interval '1 h'")
    assert broker.known.counts_of(queue).total == 0
    await broker.queue_stats(queue)
    (listed,) = [each for each in await broker.queues() if each.queue == queue]
    assert (listed.ready, listed.processing) == (1, 1)
    assert broker.known.counts()[queue] == broker.known.counts_of(queue)
    counters = Counters()
    ages = Ages(broker.known, broker._readers, counters, broker._clock)
    await QueueGauges(broker.known, ages, counters).refresh()
    assert (
        counters.counts[counters.queues.key(queue)].ready,
        counters.depths[counters.queues.key(queue)],
    ) == (1, 2)
    await broker.unbind(queue)
    assert broker.known.counts_of(queue).total == broker.known.counts()[queue].total == 0


async def test_a_peek_shows_what_comes_next(broker, queue, rows) -> None:
    ids = [rows.add({"n": n}) for n in range(3)]
    first = rows.add({"n": "due"}, scheduled_for="now() - interval '1 s'")
    rows.add({}, scheduled_for="now() + interval '1 h'")
    shown = await broker.peek(queue, limit=3)
    assert [each.id for each in shown] == [str(each) for each in (first, *ids[:2])]
    assert [each.queue for each in shown] == [queue] * 3
    delivered = await broker.receive(queue, max_messages=3, wait_ms=0)
    assert [each.id for each in delivered] == [each.id for each in shown]
    seen = await broker.message(queue, str(first))
    assert (seen.status, seen.attempts, seen.content) == ("processing", 1, '{"n": "due"}')
    assert (await broker.message(queue, str(ids[2]))).status == "ready"
    await broker.ack(queue, delivered)
    with pytest.raises(MessageNotFound):
        await broker.message(queue, str(first))


async def test_history_of_the_table_has_what_the_queue_did(broker, queue, connection, table, rows) -> None:
    rows.add({})
    rows.add({})
    done, lost = await broker.receive(queue, max_messages=2, wait_ms=0)
    await broker.ack(queue, done)
    await broker.discard(queue, lost, reason="useless")
    assert [str(each.id) for each in history.find(connection, table, "ok")] == [done.id]
    (failed,) = history.find(connection, table, "failed")
    assert failed.reason == "useless"
    assert history.requeue(connection, table) == 1
    (again,) = await broker.receive(queue, wait_ms=0)
    assert again.id == lost.id


# What a bound queue cannot do


async def test_what_a_table_cannot_do_is_refused_by_name(broker, queue, table, rows) -> None:
    for setting in (
        {"delay_ms": 1},
        {"max_messages": 1},
        {"rate": None, "in_flight_max": 1},
        {"order": "lifo"},
    ):
        with pytest.raises(InvalidSetting):
            await broker.configure(queue, **setting)
    await broker.configure(queue, lease_ms=1_000)
    await broker.reset_settings(queue)
    assert (await broker.bound_table(queue)).table
    some_id = "0190d5a0-0000-7000-8000-000000000000"
    lent = "a receive at random or with a redrive policy is not possible"
    for refused, said in (
        (broker.pause(queue), f"the queue is bound to the table {table!r}: a pause is not possible"),
        (broker.purge(queue), "a purge is not possible"),
        (broker.cancel(queue, some_id), "a cancellation is not possible"),
        (broker.receive(queue, shuffle=True), lent),
        (broker.receive(queue, redrive_policy=RedrivePolicy(3)), lent),
        (broker.peek(queue, shuffle=True), "a look at random, or one that waits, is not possible"),
        (broker.peek(queue, wait_ms=1), "a look at random, or one that waits, is not possible"),
        (broker.ack_message(queue, some_id, None), "a settlement without a receipt is not possible"),
        (broker.nack_message(queue, some_id, None), "a settlement without a receipt is not possible"),
        (broker.open_consumer(queue, "job"), "a consumer of a pipeline is not possible"),
        (broker.offer(queue, "key", "{}"), QueueBound().message),
        (broker.configure("another", dead_letter_queue=queue), QueueBound().message),
    ):
        with pytest.raises(QueueBound) as caught:
            await refused
        assert caught.value.message.endswith(said)
    await broker.resume(queue)  # as of any queue that is not paused
    (result,) = await broker.produce_across([(queue, NewMessage("{}"))])
    assert isinstance(result, QueueBound)
    assert rows.all() == []


async def test_a_queue_has_its_own_messages_again(broker, queue, rows) -> None:
    rows.add({})
    await broker.unbind(queue)
    assert await broker.receive(queue, wait_ms=0) == []
    await broker.produce(queue, "text")
    assert [each.content for each in await broker.receive(queue, wait_ms=0)] == ["text"]
    assert len(rows.all()) == 1


async def test_deleting_the_queue_leaves_the_table(broker, queue, rows) -> None:
    rows.add({})
    await broker.delete_queue(queue)
    with pytest.raises(QueueNotFound):
        await broker.settings(queue)
    assert len(rows.all()) == 1


async def test_a_table_that_goes_hurts_its_queue_only(broker, queue, connection, table) -> None:
    pgq.drop_table(connection, table)
    for call in (broker.produce(queue, "{}"), broker.receive(queue, wait_ms=0), broker.queue_stats(queue)):
        with pytest.raises(NoTable):
            await call
    await broker.produce("healthy", "x")
    assert len(await broker.receive("healthy", wait_ms=0)) == 1
    pgq.create_table(connection, table)
    await broker.produce(queue, "{}")
    assert len(await broker.receive(queue, wait_ms=0)) == 1


async def test_schedules_and_bindings_exclude_each_other(broker, queue, connection, table) -> None:
    every_hour = NewSchedule(queue=queue, content="{}", every="1h")
    with pytest.raises(QueueBound):
        await broker.save_schedule("hourly", every_hour)
    await broker.unbind(queue)
    await broker.save_schedule("hourly", every_hour)
    with pytest.raises(QueueBound, match="hourly"):
        await broker.bind(queue, table)
    await broker.delete_schedule("hourly")
    await broker.bind(queue, table)


async def test_dead_letters_are_not_moved_to_it(broker, queue, table, rows) -> None:
    await broker.unbind(queue)
    await broker.produce(queue, "{}", max_attempts=1)
    (delivery,) = await broker.receive(queue)
    await broker.nack(queue, delivery)
    letters = f"{queue}-dlq"
    (letter,) = await broker.peek(letters)
    await broker.bind(queue, table)
    (result,) = await broker.redrive(letters, [letter.id])
    assert not result.ok
    for refused in (
        broker.redrive(letters, [letter.id], target=queue),
        broker.resubmit(letters, letter.id, content="{}"),
        broker.start_redrive(letters, target=queue),
    ):
        with pytest.raises(QueueBound):
            await refused
    task = await broker.redrive_tasks.wait((await broker.start_redrive(letters)).id)
    assert (task.moved, task.skipped) == (0, 1)
    assert (await broker.queue_stats(letters)).total == 1
    assert rows.all() == []
