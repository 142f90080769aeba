"""Tables that are locked, slow, changed, or another's: their queues learn why, and no other queue waits for them."""

import os
import signal
from functools import partial

import anyio
import psycopg
import pytest
import trio
import trio.testing

from forq_trio import pgq
from forq_trio.model import limits
from forq_trio.model.errors import ForqError, OutcomeUnknown, Overloaded, StorageUnavailable, WrongTable
from forq_trio.pgq.connections import PgqConnections
from forq_trio.pgq.errors import TableBusy
from pgq.conftest import NUMBERS, locked
from support.processes import WAIT_SECONDS_MAX

WAITING = """SELECT count(*) FROM pg_stat_activity WHERE application_name = 'forq pgq' AND wait_event_type = 'Lock'
    AND datname = current_database()"""


async def until_waiting(connection: psycopg.Connection, number: int) -> None:
    with trio.fail_after(WAIT_SECONDS_MAX):
        while connection.execute(WAITING).fetchone() < (number,):
            await trio.lowlevel.checkpoint()


class Held:
    """Work of calls that lasts until `ends` is set. is_full: `number` run. most: of those that ran at once."""

    def __init__(self, number: int = 1) -> None:
        self._number = number
        self._running = 0
        self._token = trio.lowlevel.current_trio_token()
        self.most = 0
        self.is_full = trio.Event()
        self.ends = trio.Event()

    def __call__(self, connection: object) -> str:
        trio.from_thread.run_sync(self._begin, trio_token=self._token)
        trio.from_thread.run(self.ends.wait, trio_token=self._token)
        trio.from_thread.run_sync(self._end, trio_token=self._token)
        return "claimed"

    def _begin(self) -> None:
        self._running += 1
        self.most = max(self.most, self._running)
        if self._running == self._number:
            self.is_full.set()

    def _end(self) -> None:
        self._running -= 1


@pytest.fixture
async def other(broker, connection) -> str:
    """Another queue with a table of its own."""
    name = f"other{next(NUMBERS)}"
    pgq.create_table(connection, name)
    await broker.bind(name, name)
    return name


async def test_a_locked_table_delays_no_other_queue(broker, queue, table, other, connection, pgq_url) -> None:
    failed: list[str] = []

    async def send() -> None:
        try:
            await broker.produce(queue, "{}")
        except StorageUnavailable as error:
            failed.append(str(error))

    async with trio.open_nursery() as nursery:
        with locked(pgq_url, table):
            for _ in range(12):
                nursery.start_soon(send)
            await until_waiting(connection, 1)
            await broker.produce(other, "{}")
            assert len(await broker.receive(other, wait_ms=0)) == 1
            await broker.produce("unbound", "x")
            assert failed == []
    await broker.produce(queue, "{}")


async def test_calls_for_one_table_do_not_fill_the_inbox(
    locks_are_short, broker, queue, table, other, pgq_url, monkeypatch
) -> None:
    monkeypatch.setattr(limits, "BOUND_CALLS_MAX", 3)
    outcomes: list[type[ForqError]] = []

    async def send() -> None:
        with pytest.raises(ForqError) as caught:
            await broker.produce(queue, "{}")
        outcomes.append(type(caught.value))

    with locked(pgq_url, table):
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(send)
    assert outcomes == [Overloaded] * 2 + [TableBusy] * 3


async def test_a_call_waits_for_a_connection_for_a_bound(pgq_url, table, monkeypatch) -> None:
    monkeypatch.setattr(limits, "PGQ_SHARE_SECONDS_MAX", 0.01)
    connections = PgqConnections(pgq_url, 1)
    held = Held()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connections.run, table, held)
        await held.is_full.wait()
        with pytest.raises(StorageUnavailable, match="too many calls wait for the table"):
            await connections.run(table, lambda connection: None)
        assert await connections.run("another", lambda connection: 1) == 1
        held.ends.set()
    connections.close()


async def test_slow_tables_have_connections_of_their_own(pgq_url, monkeypatch) -> None:
    monkeypatch.setattr(limits, "PGQ_SLOW_SECONDS", 0.0)
    connections = PgqConnections(pgq_url, 1)
    for number in range(limits.PGQ_CONNECTIONS_MAX):
        await connections.run(f"slow{number}", lambda connection: None)
    monkeypatch.undo()
    held = Held(limits.PGQ_SLOW_CONNECTIONS_MAX)
    async with trio.open_nursery() as nursery:
        for number in range(limits.PGQ_CONNECTIONS_MAX):
            nursery.start_soon(connections.run, f"slow{number}", held)
        await held.is_full.wait()
        for number in range(limits.PGQ_CONNECTIONS_MAX):
            assert await connections.run(f"quick{number}", lambda connection: 1) == 1
        held.ends.set()
    assert held.most == limits.PGQ_SLOW_CONNECTIONS_MAX
    connections.close()


@pytest.mark.parametrize("kind", ["claim", "send"])
async def test_calls_that_become_slow_leave_their_places_to_other_tables(pgq_url, kind) -> None:
    connections = PgqConnections(pgq_url, 2)
    held = Held(limits.PGQ_LATE_CONNECTIONS_MAX)
    with trio.fail_after(WAIT_SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            for number in range(limits.PGQ_LATE_CONNECTIONS_MAX):
                nursery.start_soon(partial(connections.run, f"held{number // 2}", held, kind=kind))
            try:
                await held.is_full.wait()
                for number in range(limits.PGQ_CONNECTIONS_MAX):
                    assert await connections.run(f"quick{number}", lambda connection: 1, kind=kind) == 1
            finally:
                held.ends.set()
    assert len(connections._idle) <= limits.PGQ_CONNECTIONS_MAX
    connections.close()


@pytest.mark.parametrize("more", [0, 30])
async def test_however_many_calls_become_slow_connections_are_bounded(pgq_url, monkeypatch, more) -> None:
    monkeypatch.setattr(limits, "PGQ_SLOW_SECONDS", 0.0)
    connections = PgqConnections(pgq_url, 1)
    bound = limits.PGQ_CONNECTIONS_MAX + limits.PGQ_LATE_CONNECTIONS_MAX
    held = Held(bound)
    with trio.fail_after(WAIT_SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            for number in range(bound + more):
                nursery.start_soon(connections.run, f"held{number}", held)
            try:
                await held.is_full.wait()
                await trio.testing.wait_all_tasks_blocked()
            finally:
                held.ends.set()
    assert held.most == bound
    connections.close()


async def test_a_call_that_is_cancelled_while_it_is_slow_returns_what_it_did(pgq_url, monkeypatch) -> None:
    monkeypatch.setattr(limits, "PGQ_SLOW_SECONDS", 0.0)
    connections = PgqConnections(pgq_url, 1)
    held = Held()
    results: list[str] = []

    async def call() -> None:
        results.append(await connections.run("slow", held))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await held.is_full.wait()
        nursery.cancel_scope.cancel()
        held.ends.set()
    assert results == ["claimed"]
    connections.close()


async def test_however_many_claims_wait_a_send_does_not(pgq_url) -> None:
    connections = PgqConnections(pgq_url, 1)
    held = Held(limits.PGQ_CLAIM_CONNECTIONS_MAX)
    async with trio.open_nursery() as nursery:
        for number in range(2 * limits.PGQ_CONNECTIONS_MAX):
            nursery.start_soon(partial(connections.run, f"claimed{number}", held, kind="claim"))
        await held.is_full.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert await connections.run("sent", lambda connection: 1) == 1
        held.ends.set()
    connections.close()


@pytest.mark.parametrize(
    "change",
    [
        "ALTER COLUMN consumed_count SET DEFAULT NULL, ALTER COLUMN consumed_count TYPE text,"
        " ALTER COLUMN consumed_count SET DEFAULT '0'",
        "ALTER COLUMN locked_until TYPE text",
        "DROP COLUMN error_detail",
    ],
)
async def test_a_table_whose_columns_change_is_called_wrong(broker, queue, rows, change) -> None:
    rows.add({})
    (delivery,) = await broker.receive(queue, wait_ms=0)
    rows.run(f"ALTER TABLE {{}} {change}")
    results: list[object] = []
    for call in (
        broker.produce(queue, "{}"),
        broker.receive(queue, wait_ms=0),
        broker.nack(queue, delivery),
        broker.queue_stats(queue),
        broker.peek(queue),
    ):
        try:
            results.append(await call)
        except WrongTable as error:
            results.append(error)
    assert any(isinstance(each, WrongTable) for each in results), results
    await broker.produce("unbound", "x")


async def test_a_reason_and_a_row_of_any_length_are_shown_in_part(broker, queue, rows) -> None:
    """Whoever may change rows could fill the memory of the server that shows them."""
    large = rows.add({"a": "x" * (limits.PGQ_CLAIM_BYTES_MAX + 1)}, created_at="'epoch'")
    for _ in range(100):
        rows.add(error_detail="repeat('x', 1000000)")
    first, *others = await broker.peek(queue, limit=100)
    assert (first.id, first.content, first.attributes) == (str(large), "", {})
    assert first.bytes > limits.PGQ_CLAIM_BYTES_MAX
    assert others == []
    rows.run("DELETE FROM {} WHERE id = %s", large)
    reasons = [each.last_error for each in await broker.peek(queue, limit=100)]
    assert set(map(len, reasons)) == {limits.PGQ_LIST_PAYLOAD_CHARACTERS_MAX}
    assert len(reasons) == limits.PGQ_CLAIM_BYTES_MAX // limits.PGQ_LIST_PAYLOAD_CHARACTERS_MAX


async def test_a_database_that_does_not_answer_holds_up_no_call_for_good(
    broker, queue, connection, monkeypatch
) -> None:
    """Its machine answers packets, but no statement: no time-out of the database ends that."""
    await broker.produce(queue, "{}")
    ours = "SELECT pid FROM pg_stat_activity WHERE application_name = 'forq pgq' AND datname = current_database()"
    pids = [pid for (pid,) in connection.execute(ours)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        with monkeypatch.context() as impatient:
            impatient.setattr(limits, "PGQ_ANSWER_SECONDS_MAX", 0.3)
            with pytest.raises(OutcomeUnknown, match="does not answer"):
                await broker.produce(queue, "{}")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    await broker.produce(queue, "{}")


async def test_who_waits_for_many_kinds_of_messages_has_no_other_table_looked_at_later(tables) -> None:
    """A client's receives, each with a condition of its own, would slow the looks for all tables."""
    kept = [tables._turns.setdefault(("theirs", each), anyio.Lock()) for each in range(1_000)]
    kept.append(tables._turns.setdefault(("ours", 0), anyio.Lock()))
    assert tables._polling_seconds("ours") == limits.PGQ_POLLING_SECONDS_DEFAULT
    assert tables._polling_seconds("theirs") == (2 * 1_000 - 1) / limits.PGQ_LOOKS_A_SECOND_MAX
