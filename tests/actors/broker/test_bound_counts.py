"""The counts of bound tables: read one after the other, with rests, and remembered where counting takes long."""

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from forq_trio.broker.bound_counts import TableCounts
from forq_trio.model import limits
from forq_trio.model.errors import NoTable, StorageUnavailable
from forq_trio.model.messages.types import QueueCounts


async def passes(seconds: float) -> None:
    """So much time of the clock, which jumps."""
    with trio.move_on_after(seconds):
        await trio.sleep_forever()


class Tables:
    """Tables that are counted: how long that takes, and what comes of it. seen: what was counted, and when."""

    def __init__(self) -> None:
        self.bound = {"q": "t"}
        self.seconds = 0.0
        self.ready = 1
        self.error: Exception | None = None
        self.seen: list[tuple[str, float]] = []
        self.counts = TableCounts(lambda: self.bound, self.count)

    async def count(self, queue: str, table: str) -> QueueCounts:
        self.seen.append((queue, trio.current_time()))
        await passes(self.seconds)
        if self.error is not None:
            raise self.error
        return QueueCounts(ready=self.ready)


@pytest.fixture
def tables() -> Tables:
    return Tables()


async def while_running(
    tables: Tables, seconds: float, then: Callable[[], Awaitable[None]] | None = None
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tables.counts.run)
        await passes(seconds)
        if then is not None:
            await then()
        nursery.cancel_scope.cancel()


async def test_nothing_is_known_before_the_first_look(tables) -> None:
    assert tables.counts.of("q", "t") is None
    await tables.counts.read("q", "t")
    assert tables.counts.of("q", "t") == QueueCounts(ready=1)
    assert tables.counts.of("q", "another") is None


async def test_quick_counts_are_always_new(tables, autojump_clock) -> None:
    tables.seconds = limits.TABLE_COUNT_QUICK_SECONDS / 2
    await tables.counts.read("q", "t")
    tables.ready = 2
    assert (await tables.counts.read("q", "t")).ready == 2


async def test_slow_counts_are_remembered_for_a_rest(tables, autojump_clock) -> None:
    tables.seconds = 1.0
    await tables.counts.read("q", "t")
    tables.ready = 2
    await passes(limits.TABLE_COUNT_REST - 0.1)
    assert (await tables.counts.read("q", "t")).ready == 1
    await passes(0.2)
    assert (await tables.counts.read("q", "t")).ready == 2
    assert (await tables.counts.read("q", "another")).ready == 2
    assert len(tables.seen) == 3


async def test_those_who_ask_at_once_share_a_slow_count(tables, autojump_clock) -> None:
    tables.seconds = 1.0
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(tables.counts.read, "q", "t")
    assert len(tables.seen) == 1


async def test_the_job_rests_between_tables(tables, autojump_clock) -> None:
    tables.bound = {name: name for name in "abc"}
    tables.seconds = 0.1
    await while_running(tables, 4 * limits.TABLES_COUNTED_SECONDS)
    assert [name for name, _ in tables.seen[:4]] == ["a", "b", "c", "a"]
    times = [at for _, at in tables.seen]
    rest = tables.seconds * (limits.TABLE_COUNT_REST + 1)
    assert times[:4] == pytest.approx([0, rest, 2 * rest, limits.TABLES_COUNTED_SECONDS])


async def test_the_job_goes_on_after_errors_and_keeps_what_was_known(tables, autojump_clock) -> None:
    async def check() -> None:
        tables.error = StorageUnavailable()
        await passes(limits.TABLES_COUNTED_SECONDS)
        assert tables.counts.of("q", "t") == QueueCounts(ready=1)
        tables.error = NoTable()
        await passes(limits.TABLES_COUNTED_SECONDS)
        assert tables.counts.of("q", "t") is None
        tables.error = None
        await passes(limits.TABLES_COUNTED_SECONDS)
        assert tables.counts.of("q", "t") == QueueCounts(ready=1)
        tables.bound = {}
        await passes(limits.TABLES_COUNTED_SECONDS)
        assert not tables.counts.queues()

    await while_running(tables, 1, check)


async def test_a_slow_table_delays_the_others_by_a_bound(tables, autojump_clock) -> None:
    tables.bound = {name: name for name in "ab"}
    tables.seconds = 30.0
    await while_running(tables, 90)
    assert tables.seen == [("a", 0), ("b", tables.seconds + limits.TABLES_COUNTED_SECONDS)]
