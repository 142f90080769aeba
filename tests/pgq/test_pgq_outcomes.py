"""What becomes of a claimed message, and that only who holds it has a say."""

from datetime import timedelta

import pytest

from forq_trio import pgq
from forq_trio.model.errors import MalformedReceipt, OutcomeUnknown
from forq_trio.pgq.tables import Tables
from forq_trio.worker import DeadLetter, Discard, Job, Retry

UNTOUCHED = {"locked_until": None, "processed_at": None}


async def one(tables: Tables, table: str, **options) -> str:
    """The receipt of the next message."""
    (delivery,) = await tables.receive(table, **options)
    return delivery.receipt


async def handled(pgq_url: str, table: str, outcome: object, **options) -> pgq.Consumer:
    """A consumer that has handled all that is there with a handler that ends so."""
    consumer = pgq.Consumer(pgq_url, **options)

    @consumer.on(table)
    async def handle(payload: dict) -> object:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    await consumer.drain()
    return consumer


async def test_processed(pgq_url, rows, table) -> None:
    rows.add(error_detail="'of an earlier attempt'")
    consumer = await handled(pgq_url, table, None)
    row = rows.one()
    assert row["processed_at"] >= row["started_at"]
    assert (row["locked_until"], row["error_detail"], row["consumed_count"]) == (None, None, 1)
    assert consumer.stats[table].handled == 1


@pytest.mark.parametrize("outcome", [Discard("no such customer"), DeadLetter("no such customer")])
async def test_processed_with_an_error_is_never_delivered_again(pgq_url, rows, table, outcome) -> None:
    rows.add()
    await handled(pgq_url, table, outcome)
    row = rows.one()
    assert row["processed_at"] is not None
    assert (row["locked_until"], row["error_detail"], row["consumed_count"]) == (None, "no such customer", 1)


async def test_not_processed_is_free_at_once_with_its_reason(tables, rows, table) -> None:
    rows.add()
    assert (await tables.nack(table, [await one(tables, table)], reason="ValueError: x"))[0].ok
    assert rows.one().items() >= (UNTOUCHED | {"error_detail": "ValueError: x", "consumed_count": 1}).items()
    assert (await tables.nack(table, [await one(tables, table)]))[0].ok
    assert rows.one().items() >= (UNTOUCHED | {"error_detail": "unknown", "consumed_count": 2}).items()


async def test_the_last_attempt_ends_with_its_reason(pgq_url, rows, table) -> None:
    rows.add()
    consumer = await handled(pgq_url, table, ValueError("x"))
    row = rows.one()
    assert (consumer.stats[table].failed, consumer.stats[table].dead) == (2, 1)
    assert row["processed_at"] is not None
    assert (row["locked_until"], row["error_detail"], row["consumed_count"]) == (None, "ValueError: x", 3)


async def test_a_policy_keeps_the_bound_of_the_tables(pgq_url, rows, table) -> None:
    consumer = pgq.Consumer(pgq_url, attempts_max=2)
    seen: list[tuple[int, bool]] = []

    @consumer.on(table, retry=[0] * 9)
    async def handle(payload: dict, job: Job) -> None:
        seen.append((job.attempt, job.last_attempt))
        raise ValueError("no")

    rows.add()
    await consumer.drain()
    assert seen == [(1, False), (2, True)]
    assert (consumer.stats[table].failed, consumer.stats[table].dead) == (1, 1)
    assert rows.one()["error_detail"] == "ValueError: no"


async def test_a_retry_is_scheduled_and_what_was_scheduled_stays_so(pgq_url, tables, rows, table) -> None:
    rows.add(scheduled_for="'2020-02-02'")
    await tables.nack(table, [await one(tables, table)])
    assert rows.one()["scheduled_for"].year == 2020
    await handled(pgq_url, table, Retry(60))
    (row,) = rows.run("SELECT scheduled_for - now() AS ahead, * FROM {}")
    assert timedelta(seconds=50) < row["ahead"] <= timedelta(seconds=60)
    assert row.items() >= (UNTOUCHED | {"error_detail": "retry"}).items()


async def test_released_messages_have_no_attempt_more(tables, rows, table) -> None:
    rows.add(error_detail="'of before'")
    assert (await tables.release(table, [await one(tables, table)]))[0].ok
    assert rows.one().items() >= (UNTOUCHED | {"error_detail": "of before", "consumed_count": 0}).items()


@pytest.mark.parametrize("second", ["ack", "discard", "nack", "release", "extend"])
async def test_what_is_finished_twice_is_refused_and_the_first_result_stands(
    tables, rows, table, second
) -> None:
    more = {"discard": {"reason": "first"}, "nack": {"reason": "first"}}
    for first in ("ack", "discard", "nack", "release"):
        rows.run("DELETE FROM {}")
        rows.add()
        receipt = await one(tables, table)
        assert (await getattr(tables, first)(table, [receipt], **more.get(first, {})))[0].ok
        before = rows.all()
        (result,) = await getattr(tables, second)(
            table, [receipt], **({"reason": "second"} if second in more else {})
        )
        assert not result.ok
        assert rows.all() == before


async def test_a_holder_that_is_late_changes_nothing(tables, rows, table) -> None:
    rows.add()
    old = await one(tables, table)
    rows.run("UPDATE {} SET locked_until = now() - interval '1 s'")
    new = await one(tables, table)
    before = rows.all()
    for late in ("ack", "discard", "nack", "release", "extend"):
        reason = {"reason": "x"} if late == "discard" else {}
        (result,) = await getattr(tables, late)(table, [old], **reason)
        assert not result.ok
        assert rows.all() == before
    assert [result.ok for result in await tables.ack(table, [old, new])] == [False, True]


async def test_a_lock_that_has_ended_is_still_the_holders_until_somebody_else_claims(
    tables, rows, table
) -> None:
    rows.add()
    receipt = await one(tables, table)
    rows.run("UPDATE {} SET locked_until = now() - interval '1 s'")
    assert (await tables.ack(table, [receipt]))[0].ok


async def test_a_released_message_is_not_the_former_holders_once_it_is_claimed_again(
    tables, rows, table
) -> None:
    """Both claims have the same number; their times differ."""
    rows.add()
    old = await one(tables, table)
    await tables.release(table, [old])
    new = await one(tables, table)
    assert rows.one()["consumed_count"] == 1
    assert [result.ok for result in await tables.release(table, [old])] == [False]
    assert (await tables.ack(table, [new]))[0].ok


async def test_extending_moves_the_lock_and_the_receipt_stays(tables, rows, table) -> None:
    rows.add()
    receipt = await one(tables, table, lease_ms=1_000)
    (result,) = await tables.extend(table, [receipt], 60_000)
    assert result.lease_until == round(rows.one()["locked_until"].timestamp() * 1_000)
    (left,) = rows.run("SELECT locked_until - now() AS left FROM {}")
    assert timedelta(seconds=50) < left["left"] <= timedelta(seconds=60)
    assert (await tables.ack(table, [receipt]))[0].ok


async def test_many_are_settled_together_each_with_its_own_result(tables, connection, rows, table) -> None:
    pgq.publish(connection, table, *[pgq.Message({})] * 50)
    receipts = [each.receipt for each in await tables.receive(table, max_messages=50)]
    assert all(result.ok for result in await tables.ack(table, receipts[::2]))
    results = await tables.nack(table, receipts)
    assert [result.receipt for result in results] == receipts
    assert [result.ok for result in results] == [False, True] * 25


@pytest.mark.parametrize("text", ["", "x", "a|b|c|1", "00000000-0000-0000-0000-000000000000|a|b|x"])
async def test_what_is_no_receipt_is_refused(tables, table, text) -> None:
    with pytest.raises(MalformedReceipt):
        await tables.ack(table, [text])


@pytest.mark.parametrize("settle", ["ack", "discard"])
@pytest.mark.parametrize("is_done", [True, False])
async def test_a_connection_that_is_lost_within_a_settlement_leaves_no_doubt(
    tables, rows, table, settle, is_done, monkeypatch
) -> None:
    """It is lost after the statement was carried out, or before; the same call made again tells."""
    rows.add()
    receipt = await one(tables, table)
    reason = {"reason": "x"} if settle == "discard" else {}
    real = tables._connections._run

    def losing(work):
        def lost(connection):
            if is_done:
                work(connection)
            connection.close()
            return work(connection)  # as the driver fails on a connection that is lost

        return real(lost)

    with monkeypatch.context() as patch:
        patch.setattr(tables._connections, "_run", losing)
        with pytest.raises(OutcomeUnknown):
            await getattr(tables, settle)(table, [receipt], **reason)
    assert (rows.one()["processed_at"] is not None) is is_done
    assert (await getattr(tables, settle)(table, [receipt], **reason))[0].ok
    assert not (await getattr(tables, settle)(table, [receipt], **reason))[0].ok
    assert rows.one()["error_detail"] == reason.get("reason")
