"""The reader pool: bounded connections, one deadline for waiting and reading, interrupted when nobody wants the answer.

Real threads on the real clock: the reads are a statement of SQLite that counts for minutes unless it is interrupted.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import apsw
import pytest
import trio

from forq_trio.model import limits
from forq_trio.model.access.types import CALLER
from forq_trio.model.commands import Command, MoveBack, ProduceMany
from forq_trio.model.errors import Overloaded, ReadDeadlineExceeded, Stopping, StorageUnavailable
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.reader import ReadAfter
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.reader import SqliteReader
from forq_trio.telemetry.rejections import Cause
from support.actors import until
from support.batches import do

FOR_MINUTES = """
    WITH RECURSIVE numbers (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000000000)
    SELECT max(n) FROM numbers
"""


PATIENT_SECONDS = 60.0
"""A deadline that no read misses here."""


@pytest.fixture
def engine(tmp_path) -> Iterator[SqliteEngine]:
    with closing(SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), "normal")) as engine:
        do(engine, ProduceMany("q", (NewMessage("a"), NewMessage("b"))))
        yield engine


class Opened:
    """Opens readers of an engine and remembers them."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self.readers: list[SqliteReader] = []
        self.closed = 0

    def __call__(self) -> SqliteReader:
        reader = self._engine.open_reader()
        close = reader.close

        def count_and_close() -> None:
            self.closed += 1
            close()

        reader.close = count_and_close
        self.readers.append(reader)
        return reader


@pytest.fixture
def opened(engine) -> Opened:
    return Opened(engine)


@pytest.fixture
def make_pool(opened) -> Iterator[Callable[..., ReaderPool]]:
    pools = []

    def make(size: int = 2, deadline_seconds: float = PATIENT_SECONDS) -> ReaderPool:
        pools.append(ReaderPool(opened, size, deadline_seconds))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


class LongRead:
    """A read that goes on for minutes; `started` tells that it is about to begin."""

    def __init__(self) -> None:
        self.started = threading.Event()

    def __call__(self, reader: SqliteReader) -> int:
        self.started.set()
        return for_minutes(reader)


def for_minutes(reader: SqliteReader) -> int:
    try:
        return reader._connection.execute(FOR_MINUTES).get
    except apsw.InterruptError:
        raise ReadDeadlineExceeded from None


def ready(reader: SqliteReader) -> int:
    return reader.queue("q")[0].ready


async def test_a_read_returns_what_it_read(make_pool) -> None:
    assert await make_pool().run(ready) == 2


async def test_a_read_that_needs_a_command_before_it_is_repeated_once_that_has_run(make_pool) -> None:
    asked: list[Command[None]] = []

    def read(reader: SqliteReader) -> int:
        if len(asked) < 2:
            raise ReadAfter(MoveBack("q", 3, 9 - len(asked)))
        return ready(reader)

    async def execute(command: Command[None]) -> None:
        asked.append(command)

    pool = make_pool(1)
    pool.execute = execute
    assert await pool.run(read) == 2
    assert asked == [MoveBack("q", 3, 9), MoveBack("q", 3, 8)]


async def test_what_a_read_needs_before_it_takes_of_the_deadline(make_pool) -> None:
    def read(_reader: SqliteReader) -> None:
        raise ReadAfter(MoveBack("q", 0, 9))

    async def execute(_command: Command[None]) -> None:
        await trio.sleep_forever()

    pool = make_pool(1, 0.05)
    pool.execute = execute
    with pytest.raises(ReadDeadlineExceeded):
        await pool.run(read)
    pool._deadline_seconds = PATIENT_SECONDS
    assert await pool.run(ready) == 2


async def test_its_error_comes_out_as_it_is(make_pool) -> None:
    def fail(_reader) -> None:
        raise StorageUnavailable("disk I/O error")

    with pytest.raises(StorageUnavailable, match="disk I/O error"):
        await make_pool().run(fail)


async def test_a_read_past_its_deadline_is_interrupted_and_the_connection_still_good(
    make_pool, opened
) -> None:
    pool = make_pool(size=1, deadline_seconds=0.05)
    with trio.fail_after(120), pytest.raises(ReadDeadlineExceeded):
        await pool.run(LongRead())
    pool._deadline_seconds = PATIENT_SECONDS
    assert await pool.run(ready) == 2
    assert len(opened.readers) == 1


async def test_an_interruption_between_two_statements_is_not_lost(make_pool) -> None:
    """SQLite forgets an interrupt that comes while no statement runs; so it is asked again until the read ends."""
    pool = make_pool(deadline_seconds=0.05)

    def slow_start(reader: SqliteReader) -> int:
        threading.Event().wait(0.2)
        return for_minutes(reader)

    with trio.fail_after(120), pytest.raises(ReadDeadlineExceeded):
        await pool.run(slow_start)


async def test_cancelling_interrupts_the_read(make_pool) -> None:
    pool = make_pool()
    read = LongRead()
    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.run, read)
            await until(read.started.is_set)
            nursery.cancel_scope.cancel()
        assert await pool.run(ready) == 2


async def test_more_tasks_than_connections_share_them(make_pool, opened) -> None:
    pool = make_pool(size=3)
    inside = 0
    most = 0
    lock = threading.Lock()

    def count(reader: SqliteReader) -> int:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        result = ready(reader)
        with lock:
            inside -= 1
        return result

    results = []

    async def read() -> None:
        results.append(await pool.run(count))

    async with trio.open_nursery() as nursery:
        for _ in range(60):
            nursery.start_soon(read)
    assert results == [2] * 60
    assert most <= 3
    assert len(opened.readers) <= 3


async def test_waiting_for_a_connection_counts_towards_the_deadline(make_pool) -> None:
    pool = make_pool(size=1, deadline_seconds=0.1)
    read = LongRead()

    async def occupy() -> None:
        with pytest.raises(ReadDeadlineExceeded):
            await pool.run(read)

    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(occupy)
            await until(read.started.is_set)
            with pytest.raises(ReadDeadlineExceeded):
                await pool.run(LongRead())


async def test_reads_do_not_wait_for_other_work_in_threads(make_pool) -> None:
    """Its own limiter: with every default worker thread taken, reading goes on."""
    limiter = trio.to_thread.current_default_thread_limiter()
    borrowers = [object() for _ in range(int(limiter.total_tokens))]
    for borrower in borrowers:
        limiter.acquire_on_behalf_of_nowait(borrower)
    try:
        with trio.fail_after(120):
            assert await make_pool().run(ready) == 2
    finally:
        for borrower in borrowers:
            limiter.release_on_behalf_of(borrower)


async def test_closing_closes_idle_connections_at_once_and_busy_ones_when_they_end(make_pool, opened) -> None:
    pool = make_pool()
    assert await pool.run(ready) == 2
    go_on = threading.Event()
    started = threading.Event()

    def wait(reader: SqliteReader) -> int:
        started.set()
        assert go_on.wait(120)
        return ready(reader)

    results = []

    async def read() -> None:
        results.append(await pool.run(wait))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await until(started.is_set)
        pool.close()
        with pytest.raises(Stopping):
            await pool.run(ready)
        go_on.set()
    assert results == [2]
    assert opened.closed == len(opened.readers)


async def test_reads_that_wait_for_a_connection_are_refused_at_the_close(make_pool) -> None:
    pool = make_pool(size=1)
    go_on = threading.Event()
    started = threading.Event()

    def wait(_reader: SqliteReader) -> None:
        started.set()
        assert go_on.wait(120)

    refused = []

    async def read() -> None:
        try:
            await pool.run(ready)
        except Stopping as error:
            refused.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool.run, wait)
        await until(started.is_set)
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        pool.close()
        go_on.set()
    assert len(refused) == 1


async def test_a_connection_cannot_write(make_pool) -> None:
    def write(reader: SqliteReader) -> None:
        reader._connection.execute("DELETE FROM messages")

    with pytest.raises(apsw.ReadOnlyError):
        await make_pool().run(write)


async def test_cancelled_before_it_begins_it_reads_nothing(make_pool) -> None:
    called = []
    with trio.CancelScope() as scope:
        scope.cancel()
        await make_pool().run(called.append)
    assert scope.cancelled_caught
    assert called == []


async def test_long_reads_of_one_caller_do_not_delay_short_reads(make_pool) -> None:
    pool = make_pool(size=2)
    go_on = threading.Event()
    started = threading.Event()

    def wait(_reader: SqliteReader) -> None:
        started.set()
        assert go_on.wait(120)

    async with trio.open_nursery() as nursery:
        try:
            for _ in range(12):
                nursery.start_soon(partial(pool.run, wait, long=True))
            await until(started.is_set)
            with trio.fail_after(120):
                assert await pool.run(ready) == 2
        finally:
            go_on.set()


async def test_a_caller_with_too_many_reads_is_refused_and_counted_and_others_read(opened) -> None:
    refused: list[Cause] = []
    pool = ReaderPool(opened, 1, on_rejected=refused.append)
    go_on = threading.Event()
    started = threading.Event()

    def wait(_reader: SqliteReader) -> None:
        started.set()
        assert go_on.wait(120)

    async with trio.open_nursery() as nursery:
        try:
            CALLER.set("token a")
            for _ in range(limits.LONG_READS_WAITING_MAX + 1):
                nursery.start_soon(partial(pool.run, wait, long=True))
            await until(started.is_set)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(Overloaded):
                await pool.run(ready, long=True)
            assert refused == [Cause.OVERLOADED]
            CALLER.set("token b")
            nursery.start_soon(partial(pool.run, ready, long=True))
            await trio.testing.wait_all_tasks_blocked()
            assert refused == [Cause.OVERLOADED]
        finally:
            go_on.set()
    pool.close()
