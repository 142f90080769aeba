"""The guard while checkpoints are slow: acks must not fill the disk meanwhile."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Semaphore

import pytest

from forq_trio.model import limits
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.log import SqliteLog
from forq_trio.storage.write_ahead_log import CheckpointResult
from forq_trio.writer_actor import WriterActor
from reliability.disk.guarded import watched
from support.actors import all_idle, until
from support.words import ack, claim


class SlowCheckpoints:
    """Checkpoints that end only once the log has grown by `pages` meanwhile, or the writer waits for them."""

    def __init__(self, log: SqliteLog, pages: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._log, self._pages = log, pages
        self._checkpoint, self._paused = log.checkpoint, WriterActor.paused
        self._ends, self._all_end = Semaphore(0), False
        self._begun_pages: int | None = None  # while one waits
        self.ended = 0
        monkeypatch.setattr(log, "checkpoint", self.checkpoint)
        monkeypatch.setattr(WriterActor, "paused", lambda writer: self.paused(writer))

    def checkpoint(self, **how: bool) -> CheckpointResult:
        result = self._checkpoint(**how)
        self._begun_pages = self._log.pages()
        if not self._all_end:
            self._ends.acquire()
        self._begun_pages = None
        self.ended += 1
        return result

    @asynccontextmanager
    async def paused(self, writer: WriterActor) -> AsyncIterator[None]:
        async with self._paused(writer):
            self.let_end()
            yield
            self._ends, self._all_end = Semaphore(0), False

    def let_end(self) -> None:
        self._all_end = True
        self._ends.release()

    async def look(self) -> None:
        """Let the checkpoint end if it is time."""
        if self._begun_pages is not None and self._log.pages() >= self._begun_pages + self._pages:
            before = self.ended
            self._ends.release()
            await until(lambda: self.ended > before)


@pytest.mark.parametrize("pages", [limits.CHECKPOINT_FULL_DISK_PAGES - 10, 10**9])
async def test_acks_into_a_history_wait_for_a_slow_checkpoint_while_the_disk_is_full(
    quick_path, mock_clock, monkeypatch, pages
) -> None:
    """Each ack makes the log longer by its message, and only a checkpoint lets it start over."""
    async with watched(quick_path, EngineSettings(history=True)) as (server, _):
        stored = await server.fill()
        slow = SlowCheckpoints(server.engine.log, pages, monkeypatch)
        server.house.checkpointer.hurry()
        for _ in range(stored):
            (held,) = await server.writer.execute(claim(most=1))
            assert await server.writer.execute(ack(held)) == (True,)
            server.free_bytes(server.directory)
            await slow.look()
        slow.let_end()
        await all_idle()
        assert server.low > 0
        assert server.counters.checkpoint_pause_seconds.count > 0
