"""Consumers: handlers on trio and asyncio, their locks and deadlines, waking, draining, ending."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta

import anyio
import anyio.to_thread
import psycopg
import pytest
import trio
import trio.testing
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_trace_id
from prometheus_client import CollectorRegistry
from psycopg import sql

from forq_trio import pgq
from forq_trio.model import limits
from forq_trio.pgq import Consumer, Message
from forq_trio.worker import Job, WorkerSetupError
from forq_trio.worker.metrics import measure
from forq_trio.worker.tracing import trace
from support.processes import WAIT_SECONDS_MAX

FOR_EVER = 3_600.0
BACKENDS = pytest.mark.parametrize("backend", ["trio", "asyncio"])


def run(main: Callable[[], Awaitable[None]], backend: str) -> None:
    async def bounded() -> None:
        with anyio.fail_after(WAIT_SECONDS_MAX):
            await main()

    anyio.run(bounded, backend=backend)


@BACKENDS
def test_a_handler_gets_the_payload_as_it_is_annotated_and_the_job(
    pgq_url, connection, table, backend
) -> None:
    consumer = Consumer(pgq_url)
    seen: list[tuple] = []

    @consumer.on(table)
    async def handle(order: dict[str, int], job: Job) -> None:
        seen.append((order, job.id, job.attempt, job.attributes, job.last_attempt))

    (id,) = pgq.publish(connection, table, Message({"n": 7}, {"a": "b"}))

    async def main() -> None:
        assert await consumer.drain() == 1

    run(main, backend)
    assert seen == [({"n": 7}, str(id), 1, {"a": "b"}, False)]


@pytest.mark.parametrize(("attempts_max", "last"), [(0, [False] * 4), (1, [True]), (3, [False, False, True])])
async def test_attempts_are_counted_and_the_last_one_is_known(
    pgq_url, rows, table, attempts_max, last
) -> None:
    consumer = Consumer(pgq_url, attempts_max=attempts_max)
    seen: list[tuple[int, bool]] = []

    @consumer.on(table)
    async def handle(payload: dict, job: Job) -> None:
        seen.append((job.attempt, job.last_attempt))
        if len(seen) < 4:
            raise ValueError

    rows.add()
    await consumer.drain()
    assert seen == list(enumerate(last, 1))


async def test_a_payload_that_does_not_fit_is_discarded_with_the_place(pgq_url, rows, table) -> None:
    consumer = Consumer(pgq_url)

    @consumer.on(table)
    async def handle(order: dict[str, int]) -> None: ...

    rows.add({"n": "seven"})
    rows.add({"n": 7})
    await consumer.drain()
    bad, good = rows.all()
    assert "Expected `int`, got `str` - at `$[...]`" in bad["error_detail"]
    assert (bad["processed_at"] is None, good["error_detail"]) == (False, None)


async def test_a_consumer_that_stops_when_empty_sees_behind_rows_that_are_no_messages(
    pgq_url, rows, table
) -> None:
    consumer = Consumer(pgq_url)

    @consumer.on(table, concurrency=1)
    async def handle(payload: dict) -> None: ...

    for payload in ([], [], {}, [], {}):
        rows.add(payload)
    await consumer.drain()
    assert consumer.stats[table].handled == 2
    assert rows.run("SELECT count(*) AS n FROM {} WHERE processed_at IS NULL") == [{"n": 0}]


def test_a_handler_may_be_a_plain_function_and_send(pgq_url, rows, table) -> None:
    consumer = Consumer(pgq_url)

    @consumer.on(table, concurrency=1)
    def handle(payload: dict) -> None: ...

    async def main() -> None:
        async with consumer:
            produced = await consumer.send(table, {"a": 1}, attributes={"b": "c"}, delay=3_600)
            with pytest.raises(pgq.InvalidPayload):
                await consumer.send("without a handler", [1])
            with pytest.raises(Exception, match="has no priority"):
                await consumer.send(table, {}, priority=7)
            with pytest.raises(Exception, match="has no keys"):
                await consumer.send(table, {}, key="k")
        row = rows.one()
        assert (str(row["id"]), row["payload"], row["metadata"]) == (produced.id, {"a": 1}, {"b": "c"})
        assert row["scheduled_for"] - row["created_at"] > timedelta(minutes=59)

    run(main, "asyncio")


@BACKENDS
def test_no_more_than_its_slots_are_in_process_and_a_slow_one_stops_no_other(
    pgq_url, connection, table, backend
) -> None:
    consumer = Consumer(pgq_url)
    pgq.publish(connection, table, *(Message({"n": n}) for n in range(20)))
    busy, most, done = 0, 0, []

    async def main() -> None:
        others = anyio.Event()

        @consumer.on(table, concurrency=3)
        async def handle(payload: dict[str, int]) -> None:
            nonlocal busy, most
            busy += 1
            most = max(most, busy)
            if payload["n"] == 0:
                await others.wait()
            await anyio.lowlevel.checkpoint()
            busy -= 1
            done.append(payload["n"])
            if len(done) == 19:
                others.set()

        await consumer.drain()

    run(main, backend)
    assert (most, done[-1], sorted(done)) == (3, 0, list(range(20)))


@BACKENDS
@pytest.mark.parametrize("notify", [True, False])
def test_a_waiting_consumer_is_woken_by_the_trigger_or_looks_at_intervals(
    pgq_url, connection, notify, backend
) -> None:
    table = f"{backend} {notify}"
    pgq.create_table(connection, table, notify=notify)
    consumer = Consumer(pgq_url, polling=FOR_EVER if notify else 0.05)

    async def main() -> None:
        handled = anyio.Event()
        waits = anyio.Event()
        event = consumer._tables._wakes.event

        @consumer.on(table)
        async def handle(payload: dict) -> None:
            handled.set()

        def asked(table: str) -> anyio.Event:
            waits.set()
            return event(table)

        consumer._tables._wakes.event = asked  # type: ignore[method-assign]
        async with consumer:
            await waits.wait()
            await anyio.to_thread.run_sync(lambda: pgq.publish(connection, table, Message({})))
            await handled.wait()

    run(main, backend)


async def never_listening(wakes: object, *, task_status: trio.TaskStatus[None]) -> None:
    task_status.started()
    await trio.sleep_forever()


class Counted:
    """Counts the pieces of work that a consumer has had carried out in its database."""

    def __init__(self, consumer: Consumer) -> None:
        self.number = 0
        self._changed = anyio.Event()
        self._run = consumer._tables._connections.run
        consumer._tables._connections.run = self.run  # type: ignore[method-assign]

    async def run(self, table, work, *, kind="other"):
        result = await self._run(table, work, kind=kind)
        self.number += 1
        self._changed.set()
        self._changed = anyio.Event()
        return result

    async def until(self, number: int) -> None:
        while self.number < number:
            await self._changed.wait()
        await trio.testing.wait_all_tasks_blocked(0.05)  # the cushion: threads may go on


def run_on(clock: trio.testing.MockClock, main: Callable[[], Awaitable[None]]) -> None:
    trio.run(main, clock=clock)


@pytest.mark.parametrize(("looks_a_second", "seconds"), [(limits.PGQ_LOOKS_A_SECOND_MAX, 5), (0.1, 10)])
def test_an_idle_consumer_claims_once_in_an_interval(
    pgq_url, table, monkeypatch, looks_a_second, seconds
) -> None:
    """Which is longer where many tables share the bound on looks."""
    monkeypatch.setattr(limits, "PGQ_LOOKS_A_SECOND_MAX", looks_a_second)
    monkeypatch.setattr("forq_trio.pgq.wakes.Wakes.run", never_listening)
    consumer, clock = Consumer(pgq_url, polling=5), trio.testing.MockClock()

    @consumer.on(table)
    async def handle(payload: dict) -> None: ...

    async def main() -> None:
        done = Counted(consumer)
        another = consumer._tables._turns.setdefault(("another",), anyio.Lock())
        async with consumer:
            await done.until(2)  # the check of the table, and the first claim
            for number in (3, 4):
                clock.jump(seconds - 0.1)
                await done.until(number - 1)
                assert done.number == number - 1
                clock.jump(0.2)
                await done.until(number)
        assert not another.locked()

    run_on(clock, main)


async def test_what_falls_due_is_handled_then_without_an_interval(pgq_url, connection, table) -> None:
    consumer = Consumer(pgq_url, polling=FOR_EVER)
    handled = anyio.Event()

    @consumer.on(table)
    async def handle(payload: dict) -> None:
        handled.set()

    pgq.publish(connection, table, Message({}, delay=timedelta(seconds=0.3)))
    with anyio.fail_after(WAIT_SECONDS_MAX):
        async with consumer:
            await handled.wait()


def test_a_lock_is_extended_while_its_handler_runs(pgq_url, rows, table, monkeypatch) -> None:
    monkeypatch.setattr("forq_trio.pgq.wakes.Wakes.run", never_listening)
    consumer, clock = Consumer(pgq_url), trio.testing.MockClock()
    rows.add()

    async def main() -> None:
        done = Counted(consumer)
        began, go_on = trio.Event(), trio.Event()

        @consumer.on(table, lease=60, concurrency=1)
        async def handle(payload: dict) -> None:
            began.set()
            await go_on.wait()

        async with consumer:
            await began.wait()
            before = rows.one()
            number = done.number
            for beat in (1, 2, 3, 4):  # more than the lock was long
                clock.jump(20.1)
                await done.until(number + beat)
            assert rows.one()["locked_until"] > before["locked_until"]
            assert rows.one()["started_at"] == before["started_at"]
            go_on.set()
            await done.until(number + 5)
        assert rows.one()["processed_at"] is not None

    run_on(clock, main)


async def test_a_deadline_may_come_earlier_and_not_later(pgq_url, rows, table) -> None:
    consumer = Consumer(pgq_url, attempts_max=1)
    rows.add()
    ends: list[str] = []

    @consumer.on(table, lease=60)
    async def handle(payload: dict, job: Job) -> None:
        before = rows.all()
        with pytest.raises(ValueError, match="only be earlier"):
            await job.set_deadline(61)
        assert rows.all() == before
        await job.set_deadline(0.2)
        (row,) = rows.run("SELECT locked_until - now() AS left FROM {}")
        assert row["left"] <= timedelta(seconds=0.2)
        ends.append("set")
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("cancelled")

    await consumer.drain()
    assert ends == ["set", "cancelled"]
    assert consumer.stats[table].lost == 1


@BACKENDS
def test_stopping_gives_back_what_is_not_done_uncounted(pgq_url, rows, table, backend) -> None:
    consumer = Consumer(pgq_url, drain_seconds=0.1)
    done, slow = rows.add({"slow": False}), rows.add({"slow": True})
    ends: list[str] = []

    async def main() -> None:
        started = anyio.Event()

        @consumer.on(table)
        async def handle(payload: dict[str, bool]) -> None:
            if not payload["slow"]:
                return
            started.set()
            try:
                await anyio.sleep_forever()
            finally:
                ends.append("cancelled")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consumer.serve)
            await started.wait()
            consumer.stop()

    run(main, backend)
    assert ends == ["cancelled"]
    (row,) = rows.run("SELECT * FROM {} WHERE id = %s", slow)
    assert [row[name] for name in ("locked_until", "processed_at", "error_detail", "consumed_count")] == [
        None,
        None,
        None,
        0,
    ]
    assert rows.run("SELECT processed_at IS NOT NULL AS done FROM {} WHERE id = %s", done) == [{"done": True}]


@BACKENDS
@pytest.mark.parametrize("end", ["stop", "cancel"])
def test_what_is_claimed_while_the_consumer_ends_is_not_lost(pgq_url, rows, table, backend, end) -> None:
    """The claim waits for a lock of somebody else's; it gets its message after the order to end."""
    rows.add()
    consumer = Consumer(pgq_url)
    waits = "wait_event_type = 'Lock' AND query LIKE '%%SKIP LOCKED%%'"

    async def main() -> None:
        @consumer.on(table)
        async def handle(payload: dict) -> None: ...

        with psycopg.connect(pgq_url) as other:
            other.execute(
                sql.SQL("LOCK TABLE {} IN SHARE MODE").format(rows.table)
            )  # lets the table be looked at
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(consumer.serve)
                while rows.run(f"SELECT count(*) AS n FROM pg_stat_activity WHERE {waits}") == [{"n": 0}]:
                    await anyio.lowlevel.checkpoint()
                if end == "stop":
                    consumer.stop()
                else:
                    tasks.cancel_scope.cancel()
                other.rollback()

    run(main, backend)
    row = rows.one()
    assert row["locked_until"] is None
    assert (row["processed_at"] is not None, row["consumed_count"]) == (
        (True, 1) if end == "stop" else (False, 0)
    )


PROGRAM = """
import sys, anyio
from forq_trio.pgq import Consumer
consumer = Consumer(sys.argv[1])
@consumer.on(sys.argv[2], lease=1)
async def handle(payload: dict) -> None:
    print("began", flush=True)
    await anyio.sleep_forever()
consumer.run()
"""


@pytest.mark.process
def test_what_a_killed_consumer_had_comes_back_when_its_lock_ends(pgq_url, rows, table) -> None:
    rows.add()
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, pgq_url, table], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"began\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    consumer = Consumer(pgq_url, polling=0.05)
    attempts: list[int] = []

    @consumer.on(table)
    async def handle(payload: dict, job: Job) -> None:
        attempts.append(job.attempt)
        consumer.stop()

    run(consumer.serve, "trio")
    assert attempts == [2]
    assert rows.one()["processed_at"] is not None


async def test_the_clock_of_the_consumer_does_not_matter(pgq_url, rows, table, monkeypatch) -> None:
    day_ns = 86_400 * 10**9
    real = __import__("time").time_ns
    monkeypatch.setattr("time.time_ns", lambda: real() + day_ns)
    monkeypatch.setattr("time.time", lambda: (real() + day_ns) / 10**9)
    consumer = Consumer(pgq_url)
    rows.add(scheduled_for="now() + interval '1 h'", metadata={"a": "later"})
    rows.add()
    seen: list[tuple] = []

    @consumer.on(table, lease=60)
    async def handle(payload: dict, job: Job) -> None:
        (row,) = rows.run("SELECT locked_until - now() AS left FROM {} WHERE locked_until IS NOT NULL")
        seen.append((job.attributes, 50 < row["left"].total_seconds() <= 60, 50 < job.seconds_left <= 60))

    await consumer.drain()
    assert seen == [({}, True, True)]


async def test_nothing_is_logged_unless_something_is_wrong(pgq_url, rows, table, caplog) -> None:
    consumer = Consumer(pgq_url)

    @consumer.on(table)
    async def handle(payload: dict) -> None: ...

    rows.add()
    await consumer.drain()
    assert [each for each in caplog.records if each.name.startswith("forq_trio")] == []
    rows.add([])
    await consumer.drain()
    (record,) = [each for each in caplog.records if each.name.startswith("forq_trio")]
    assert (record.name, record.levelno) == ("forq_trio.pgq", logging.ERROR)


async def test_metrics_and_spans_of_a_worker_are_a_consumers(pgq_url, connection, rows, table) -> None:
    exporter, provider, registry = InMemorySpanExporter(), TracerProvider(), CollectorRegistry()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    consumer = Consumer(pgq_url)
    measure(consumer, registry)
    trace(consumer, provider)

    @consumer.on(table)
    async def handle(payload: dict) -> None: ...

    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    (id,) = pgq.publish(connection, table, Message({}, {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}))
    await consumer.drain()
    (span,) = exporter.get_finished_spans()
    assert format_trace_id(span.context.trace_id) == trace_id
    assert span.attributes is not None
    named = ("messaging.destination.name", "messaging.message.id")
    assert [span.attributes[name] for name in named] == [table, str(id)]
    labels = {"queue_name": table, "outcome": "handled"}
    assert registry.get_sample_value("forq_handler_messages_total", labels) == 1


def test_what_cannot_be_is_refused_before_anything_is_claimed(pgq_url) -> None:
    for options in ({"attempts_max": -1}, {"attempts_max": 10**9}, {"polling": 0}, {"polling": 10_000}):
        with pytest.raises(ValueError, match=next(iter(options))):
            Consumer(pgq_url, **options)
    with pytest.raises(WorkerSetupError, match="name of a table"):
        Consumer(pgq_url).on("x" * 64)(print)
    with pytest.raises(pgq.InvalidDatabaseUrl):
        Consumer("http://localhost:8080")
