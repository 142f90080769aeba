"""An engine as the writer sees it: `run` executes a batch and makes it durable.

Executing a batch is Python and short statements, so it runs on the event loop. A commit waits for the disk, so the
policy (commit_policy.py) chooses where it runs: on the loop while the disk answers fast, else in a worker thread.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import trio

from forq_trio.commit_policy import CommitPolicy
from forq_trio.model.errors import StorageUnavailable
from forq_trio.storage.engine import Batch, BatchResult, Engine, OutcomeLost, Snapshot


class CommitFailed(Exception):
    """A commit failed, so what is on disk is unknown"""

    def __init__(self, message: str, served: Sequence[int] = (), *, ends: bool = True) -> None:
        """served: the ids of the receivers that the batch meant to serve. ends: only a restart can tell the outcome."""
        super().__init__(message)
        self.served = served
        self.ends = ends


class Store:
    """Runs batches on one engine, one at a time. check_texts: see `Engine`."""

    def __init__(self, engine: Engine, policy: CommitPolicy | None = None) -> None:
        """policy: where commits run; None for a CommitPolicy with the usual thresholds."""
        self._engine = engine
        self._policy = policy or CommitPolicy()
        self._thread_limiter = trio.CapacityLimiter(1)
        self.check_texts = engine.check_texts

    async def run(self, batch: Batch) -> BatchResult:
        """Execute `batch` and commit it; the result is durable when this returns.

        Raises StorageUnavailable if the database refused it (nothing was changed), and CommitFailed if it is unknown
        what is on disk; after any other exception nothing was committed. No checkpoint if the commit runs on the loop.
        Cancelled, it returns or raises only when the commit has ended.
        """
        result = self._engine.execute_batch(batch)
        with _failing(result):
            result.commit_seconds = await self._commit()
        return result

    async def _commit(self) -> float | None:
        """Commit on the loop or in a thread; returns the seconds that it took, None if there was nothing to commit."""
        if self._policy.inline:
            return self._timed_commit()
        # The shield closes the window before the thread starts; the thread itself is never abandoned.
        with trio.CancelScope(shield=True):
            seconds = await trio.to_thread.run_sync(
                self._timed_commit, abandon_on_cancel=False, limiter=self._thread_limiter
            )
        return seconds

    def _timed_commit(self) -> float | None:
        started = time.perf_counter()
        if not self._engine.commit():
            return None
        seconds = time.perf_counter() - started
        self._policy.record(seconds)
        return seconds

    def snapshot(self) -> Snapshot:
        """What the engine knows without a query, as of the last commit."""
        return self._engine.snapshot()

    def close(self) -> None:
        """Close the engine. Nothing may be called afterwards."""
        self._engine.close()


class RemoteStore(Store):
    """Runs batches on an engine over a network. Each statement waits for that, so the whole batch runs in a thread."""

    async def run(self, batch: Batch) -> BatchResult:
        with trio.CancelScope(shield=True):
            result = await trio.to_thread.run_sync(
                self._run_whole, batch, abandon_on_cancel=False, limiter=self._thread_limiter
            )
        return result

    def _run_whole(self, batch: Batch) -> BatchResult:
        result = self._engine.execute_batch(batch)
        with _failing(result):
            result.commit_seconds = self._timed_commit()
        return result


def store_of(engine: Engine, policy: CommitPolicy | None = None) -> Store:
    """The store that fits an engine. policy: see Store."""
    return Store(engine, policy) if engine.listen is None else RemoteStore(engine, policy)


@contextmanager
def _failing(result: BatchResult) -> Iterator[None]:
    """The body commits a batch. Any error but StorageUnavailable becomes CommitFailed: the outcome is unknown."""
    try:
        yield
    except StorageUnavailable:
        raise
    except Exception as error:
        served = [receiver for receiver, _ in result.served]
        raise CommitFailed(str(error), served, ends=not isinstance(error, OutcomeLost)) from error
