"""The checkpointer with real threads, the real clock and a real log; its bounds made small so that they are met."""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, closing
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.jobs.checkpointer import Checkpointer
from forq_trio.jobs.housekeeping import Housekeeping
from forq_trio.jobs.supervisor import supervise
from forq_trio.model import limits
from forq_trio.model.errors import StorageUnavailable
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.write_ahead_log import CheckpointResult, LogSpace
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor
from support.actors import ObservedEngine, all_idle, running_writer, until
from support.words import ack, claim, send

BODY = "x" * 20_000  # five pages, and one or two for the tree


class Checkpointed(ObservedEngine):
    """An engine and its log in one, which notes every checkpoint, and refuses some."""

    def __init__(self, engine: SqliteEngine) -> None:
        super().__init__(engine)
        self.log = self
        self._log = engine.log
        self.reserve_path = engine.log.reserve_path
        self.checkpoints: list[tuple[bool, CheckpointResult]] = []
        self.checkpoint_refusals = 0
        self.during_checkpoint: Callable[[], None] | None = None
        self.after_checkpoint: Callable[[], None] = lambda: None

    def pages(self) -> int:
        return self._log.pages()

    def space(self) -> LogSpace:
        return self._log.space()

    def checkpoint(self, *, truncate: bool) -> CheckpointResult:
        if self.checkpoint_refusals > 0:
            self.checkpoint_refusals -= 1
            raise StorageUnavailable("database is locked")
        result = self._checkpoint_beside_commits() or self._log.checkpoint(truncate=truncate)
        self.checkpoints.append((truncate, result))
        self.after_checkpoint()
        return result

    def _checkpoint_beside_commits(self) -> CheckpointResult | None:
        """A checkpoint that moves nothing of the commits that `during_checkpoint` makes, nor counts it, as SQLite."""
        if self.during_checkpoint is None:
            return None
        with closing(self.open_reader()) as reader:
            reader._connection.execute("BEGIN; SELECT count(*) FROM messages").fetchall()
            self.during_checkpoint()
            moved = self._log.checkpoint(truncate=False).copied_pages
        return CheckpointResult(moved, moved)


def start_checkpointer(
    nursery: trio.Nursery, house: Housekeeping, engine: Checkpointed, writer: WriterActor
) -> Counters:
    """Returns what counts its checkpoints."""
    counters = Counters()
    house.checkpointer = Checkpointer(engine.log, writer, counters)
    nursery.start_soon(supervise, house.checkpointer)
    return counters


@pytest.fixture
def house() -> Housekeeping:
    return Housekeeping()


@pytest.fixture(autouse=True)
def _small_bounds(monkeypatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_PAGES", 50)
    monkeypatch.setattr(limits, "CHECKPOINT_PAUSE_PAGES", 200)
    monkeypatch.setattr(limits, "CHECKPOINT_REST_PAGES", 20)
    monkeypatch.setattr(limits, "CHECKPOINT_IDLE_SECONDS", 0.05)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "forq.db"


@pytest.fixture
def engine(path) -> Iterator[Checkpointed]:
    observed = Checkpointed(SqliteEngine(str(path), EngineSettings(), "normal"))
    yield observed
    assert observed.closes == 1


def count_pauses(writer: WriterActor, monkeypatch) -> list[None]:
    """A list that gets longer with each pause of the writer."""
    pauses: list[None] = []
    paused = writer.paused

    def counted() -> AbstractAsyncContextManager[None]:
        pauses.append(None)
        return paused()

    monkeypatch.setattr(writer, "paused", counted)
    return pauses


def log_bytes(path) -> int:
    return path.with_name(path.name + "-wal").stat().st_size


async def test_the_log_starts_over_again_and_again_under_continuous_commits(engine, path, house) -> None:
    """How long it becomes meanwhile depends on how fast the thread is; that it does not grow for ever does not."""
    async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
        start_checkpointer(nursery, house, engine, writer)
        pages, restarts = 0, 0
        with trio.fail_after(120):
            while restarts < 3:
                await writer.execute(send(BODY))
                restarts += engine.log.pages() < pages
                pages = engine.log.pages()
        assert any(not truncate for truncate, _ in engine.checkpoints)
        nursery.cancel_scope.cancel()


async def test_checkpoints_are_few_beside_the_commits_that_they_serve(engine, house, monkeypatch) -> None:
    """One for every CHECKPOINT_PAGES added to the log, not one after every commit on a long log."""
    monkeypatch.setattr(limits, "CHECKPOINT_PAUSE_PAGES", 100_000)
    monkeypatch.setattr(limits, "CHECKPOINT_IDLE_SECONDS", 60)
    async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
        start_checkpointer(nursery, house, engine, writer)
        pages = 0
        for _ in range(100):
            before = engine.log.pages()
            await writer.execute(send(BODY))
            await all_idle()
            pages += max(
                engine.log.pages() - before, engine.log.pages() if engine.log.pages() < before else 0
            )
        assert 1 <= len(engine.checkpoints) <= pages // limits.CHECKPOINT_PAGES + 1
        nursery.cancel_scope.cancel()


async def test_a_log_past_its_bound_is_finished_while_the_writer_pauses_and_starts_over(
    engine, house, monkeypatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_IDLE_SECONDS", 60)
    async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
        while engine.log.pages() < limits.CHECKPOINT_PAUSE_PAGES:
            await writer.execute(send(BODY))
        counters = start_checkpointer(nursery, house, engine, writer)
        await wait_all_tasks_blocked()
        await writer.execute(send(BODY))
        with trio.fail_after(120):
            await until(lambda: len(engine.checkpoints) == 2)
        await wait_all_tasks_blocked(0.05)
        (_, first), (_, last) = engine.checkpoints
        assert first.log_pages >= limits.CHECKPOINT_PAUSE_PAGES
        assert last.copied_pages == last.log_pages
        assert (counters.checkpoint_seconds.count, counters.checkpoint_pause_seconds.count) == (2, 1)
        await writer.execute(send(BODY))
        assert engine.log.pages() < limits.CHECKPOINT_PAGES
        nursery.cancel_scope.cancel()


def commit_during_checkpoints(
    engine: Checkpointed, writer: WriterActor, until_then: Callable[[], bool]
) -> None:
    """During each checkpoint until then, more is committed than a short rest has."""

    def commit() -> None:
        if until_then():
            engine.during_checkpoint = None
        else:
            commit_ten(writer)

    engine.during_checkpoint = commit


def commit_ten(writer: WriterActor) -> None:
    for _ in range(10):
        trio.from_thread.run(writer.execute, send(BODY))


async def test_what_commits_add_during_checkpoints_is_not_left_for_the_pause(
    engine, house, monkeypatch
) -> None:
    """The pause moves a short rest only, however much was committed while the long log was moved."""
    monkeypatch.setattr(limits, "CHECKPOINT_IDLE_SECONDS", 60)
    async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
        pauses = count_pauses(writer, monkeypatch)
        while engine.log.pages() < limits.CHECKPOINT_PAUSE_PAGES:
            await writer.execute(send(BODY))
        commit_during_checkpoints(engine, writer, lambda: len(engine.checkpoints) >= 2 or bool(pauses))
        start_checkpointer(nursery, house, engine, writer)
        await wait_all_tasks_blocked()
        await writer.execute(send(BODY))
        with trio.fail_after(120):
            await until(lambda: bool(pauses))
            await writer.execute(send(BODY))
        (_, before), (_, paused) = engine.checkpoints[-2:]
        assert paused.copied_pages == paused.log_pages
        assert paused.copied_pages - before.copied_pages <= limits.CHECKPOINT_REST_PAGES
        assert len(pauses) == 1
        assert engine.log.pages() < limits.CHECKPOINT_PAGES
        nursery.cancel_scope.cancel()


async def test_a_writer_quicker_than_every_checkpoint_is_paused_all_the_same(
    engine, house, monkeypatch, caplog
) -> None:
    """The rest never becomes short, yet the log starts over; no read holds it, so none is told of."""
    monkeypatch.setattr(limits, "CHECKPOINT_IDLE_SECONDS", 60)
    monkeypatch.setattr(limits, "CHECKPOINT_PASSES_MAX", 4)
    async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
        pauses = count_pauses(writer, monkeypatch)
        while engine.log.pages() < limits.CHECKPOINT_PAUSE_PAGES:
            await writer.execute(send(BODY))
        commit_during_checkpoints(engine, writer, lambda: bool(pauses))
        start_checkpointer(nursery, house, engine, writer)
        await wait_all_tasks_blocked()
        await writer.execute(send(BODY))
        with trio.fail_after(120):
            await until(lambda: bool(pauses))
            await writer.execute(send(BODY))
        assert len(engine.checkpoints) == 1 + limits.CHECKPOINT_PASSES_MAX + 1
        assert engine.log.pages() < limits.CHECKPOINT_PAGES
        assert [record.getMessage() for record in caplog.records] == []
        nursery.cancel_scope.cancel()


async def test_a_log_that_starts_over_by_itself_does_not_pause_the_writer(engine, house, monkeypatch) -> None:
    """The checkpoint of the long log happened to move all of it before the next commit."""
    monkeypatch.setattr(limits, "CHECKPOINT_IDLE_SECONDS", 60)
    async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
        pauses = count_pauses(writer, monkeypatch)
        while engine.log.pages() < limits.CHECKPOINT_PAUSE_PAGES:
            await writer.execute(send(BODY))
        engine.after_checkpoint = partial(commit_ten, writer)
        start_checkpointer(nursery, house, engine, writer)
        house.checkpointer.hurry()
        with trio.fail_after(120):
            await until(lambda: engine.log.pages() < limits.CHECKPOINT_PAUSE_PAGES)
        engine.after_checkpoint = lambda: None
        await wait_all_tasks_blocked(0.05)
        assert engine.log.pages() < limits.CHECKPOINT_PAUSE_PAGES
        assert pauses == []
        nursery.cancel_scope.cancel()


async def test_the_log_is_emptied_when_nothing_was_committed_for_a_while(engine, path, house) -> None:
    async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
        start_checkpointer(nursery, house, engine, writer)
        while engine.log.pages() < 50:
            await writer.execute(send(BODY))
        with trio.fail_after(120):
            await until(lambda: any(truncate for truncate, _ in engine.checkpoints))
        length = log_bytes(path)
        assert engine.log.pages() == 0
        assert (await writer.execute(send("after"))).sequence > 0
        assert engine.log.pages() < 50
        assert log_bytes(path) == length > 0
        nursery.cancel_scope.cancel()


async def test_a_long_log_is_cut_when_nothing_was_committed_for_a_while(
    engine, path, house, monkeypatch
) -> None:
    monkeypatch.setattr(limits, "LOG_KEPT_BYTES", 20 * limits.LOG_PAGE_BYTES)
    async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
        start_checkpointer(nursery, house, engine, writer)
        while engine.log.pages() < 50:
            await writer.execute(send(BODY))
        with trio.fail_after(120):
            await until(lambda: engine.log.pages() == 0)
        assert log_bytes(path) == 0
        nursery.cancel_scope.cancel()


async def test_a_refused_checkpoint_is_survived_and_asked_for_again(engine, house) -> None:
    engine.checkpoint_refusals = 3
    async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
        start_checkpointer(nursery, house, engine, writer)
        failures = []
        with trio.fail_after(120):
            while not engine.checkpoints:
                await writer.execute(send(BODY))
                failures.append(house.checkpointer.failed)
                assert house.checkpointer.log_bytes == engine.log.pages() * limits.LOG_PAGE_BYTES
        assert engine.checkpoint_refusals == 0
        assert any(failures), "nobody was told of it"
        await all_idle()
        assert not house.checkpointer.failed
        nursery.cancel_scope.cancel()


async def test_a_long_read_holds_the_log_back_but_not_the_writer(engine, path, house) -> None:
    """Emptying the log is tried again until the reader is out of the way, and the writer never waits for it."""
    with closing(engine.open_reader()) as reader:
        reader._connection.execute("BEGIN; SELECT count(*) FROM messages").fetchall()
        async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
            start_checkpointer(nursery, house, engine, writer)
            while engine.log.pages() < limits.CHECKPOINT_PAGES:
                await writer.execute(send(BODY))
            with trio.fail_after(120):
                await until(lambda: sum(truncate for truncate, _ in engine.checkpoints) >= 3)
                seconds = []
                for _ in range(10):
                    started = trio.current_time()
                    await writer.execute(send("x"))
                    seconds.append(trio.current_time() - started)
                # The reader is there all the time, so a writer that waited for it would do so each time.
                assert min(seconds) < limits.BUSY_WAIT_MS_MAX / 1_000
                reader._connection.execute("ROLLBACK")
                await until(lambda: engine.log.pages() == 0)
            nursery.cancel_scope.cancel()


async def test_a_read_that_holds_a_long_log_is_told_of_once_and_does_not_pause_the_writer(
    engine, house, monkeypatch, caplog
) -> None:
    """Pausing would not help before the read has ended; then the log starts over, and the next such read is told of."""
    monkeypatch.setattr(limits, "CHECKPOINT_IDLE_SECONDS", 60)
    async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
        pauses = count_pauses(writer, monkeypatch)
        for episode in (1, 2):
            with closing(engine.open_reader()) as reader:
                reader._connection.execute("BEGIN; SELECT count(*) FROM messages").fetchall()
                while engine.log.pages() < limits.CHECKPOINT_PAUSE_PAGES:
                    await writer.execute(send(BODY))
                if episode == 1:
                    start_checkpointer(nursery, house, engine, writer)
                    await wait_all_tasks_blocked()
                before = engine.log.pages()
                engine.checkpoints.clear()
                pauses.clear()
                for _ in range(40):
                    await writer.execute(send(BODY))
                    await all_idle()
                grown = engine.log.pages() - before
                passes = limits.CHECKPOINT_PASSES_MAX * (grown // limits.CHECKPOINT_PAGES + 2)
                assert 0 < len(engine.checkpoints) <= passes
                assert pauses == []
                held = [record for record in caplog.records if "checkpoint.held" in record.getMessage()]
                assert len(held) == episode
                assert house.checkpointer.held
            pages = engine.log.pages()
            with trio.fail_after(120):
                await house.checkpointer.run_now()
            assert (
                not house.checkpointer.held
            )  # the read has ended, though no commit has started the log over
            with trio.fail_after(120):
                while engine.log.pages() >= pages:
                    pages = engine.log.pages()
                    await writer.execute(send(BODY))
                    await all_idle()
        nursery.cancel_scope.cancel()


async def test_a_read_that_keeps_the_log_from_being_emptied_is_no_failure(
    engine, path, house, caplog
) -> None:
    with closing(engine.open_reader()) as reader:
        reader._connection.execute("BEGIN; SELECT count(*) FROM messages").fetchall()
        async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
            start_checkpointer(nursery, house, engine, writer)
            while engine.log.pages() < limits.CHECKPOINT_PAGES:
                await writer.execute(send(BODY))
            with trio.fail_after(120):
                await until(lambda: sum(truncate for truncate, _ in engine.checkpoints) >= 3)
            assert log_bytes(path) > 0
            assert [record.getMessage() for record in caplog.records] == []
            nursery.cancel_scope.cancel()


async def test_while_space_is_short_the_log_starts_over_early_and_keeps_its_length(
    engine, path, house, monkeypatch
) -> None:
    """What acks write then needs no new space, and what there is nobody else gets."""
    monkeypatch.setattr(limits, "CHECKPOINT_PAGES", 10_000)
    monkeypatch.setattr(limits, "CHECKPOINT_FULL_DISK_PAGES", 20)
    async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
        start_checkpointer(nursery, house, engine, writer)
        for number in range(40):
            await writer.execute(send(f"{number} {BODY}"))
        length, pages = log_bytes(path), engine.log.pages()
        assert engine.checkpoints == []
        writer.storage.space_short = True
        with trio.fail_after(120):
            while engine.log.pages() >= pages:
                pages = engine.log.pages()
                await writer.execute(ack(*await writer.execute(claim())))
                await all_idle()
        assert log_bytes(path) >= length
        assert engine.checkpoints
        assert not any(truncate for truncate, _ in engine.checkpoints)
        nursery.cancel_scope.cancel()
