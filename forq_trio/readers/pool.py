"""The readers: a bounded pool of read-only connections, each used by one worker thread at a time.

A slow read does not delay others: reads have their own slots (`slots.py`), so that they never take the thread of a
commit, and a deadline after which they are interrupted. The context variable `model.access.CALLER` says whose read it
is.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from forq_trio.in_place import require_task
from forq_trio.model import limits
from forq_trio.model.access.types import CALLER
from forq_trio.model.commands import Command
from forq_trio.model.errors import Overloaded, ReadDeadlineExceeded, Stopping
from forq_trio.readers.slots import ReadSlots
from forq_trio.storage.reader import ReadAfter, Reader
from forq_trio.telemetry.rejections import Cause

T = TypeVar("T")


class ReaderPool:
    """Up to `size` connections, opened when first needed. Forq has 2 x cores + 1.

    execute: runs a command that a read needs first (ReadAfter), after which the read runs again. deadline_seconds: for
    each read, including such a command. on_rejected: called for every read that missed the deadline or was refused.
    """

    def __init__(
        self,
        open_reader: Callable[[], Reader],
        size: int,
        deadline_seconds: float = limits.READ_DEADLINE_SECONDS,
        on_rejected: Callable[[Cause], None] = lambda _: None,
    ) -> None:
        self._open_reader = open_reader
        self._slots = ReadSlots(size)
        self._deadline_seconds = deadline_seconds
        self._on_rejected = on_rejected
        self.execute: Callable[[Command[None]], Awaitable[None]] | None = None
        self._idle: list[Reader] = []
        self._closed = False

    async def run(self, read: Callable[[Reader], T], *, long: bool = False) -> T:
        """Return `read(reader)`, called in a worker thread. long: the read may cover thousands of rows.

        Waiting for a connection and reading share one deadline: past it the read is interrupted and
        ReadDeadlineExceeded raised. Cancellation interrupts the read as well. Raises Overloaded when too many reads of
        the caller wait, and Stopping after `close`.
        """
        require_task()
        with trio.move_on_after(self._deadline_seconds) as deadline:
            try:
                async with self._slots.hold(CALLER.get(), long=long):
                    if self._closed:
                        raise Stopping
                    while True:
                        try:
                            return await self._read(read)
                        except ReadAfter as needed:
                            if self.execute is None:
                                raise
                            await self.execute(needed.command)
            except Overloaded:
                self._on_rejected(Cause.OVERLOADED)
                raise
        assert deadline.cancelled_caught
        self._on_rejected(Cause.READ_TIMEOUT)
        raise ReadDeadlineExceeded

    async def _read(self, read: Callable[[Reader], T]) -> T:
        reader = self._idle.pop() if self._idle else await self._in_thread(self._open_reader)
        ended = trio.Event()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._interrupt_on_cancel, reader, ended)
                with trio.CancelScope(shield=True):
                    result = await self._in_thread(lambda: _capture(read, reader))
                ended.set()
                nursery.cancel_scope.cancel()
        finally:
            if self._closed:
                reader.close()
            else:
                self._idle.append(reader)
        if isinstance(result, BaseException):
            await trio.lowlevel.checkpoint_if_cancelled()
            raise result
        return result

    async def _interrupt_on_cancel(self, reader: Reader, ended: trio.Event) -> None:
        """Interrupt the read when it is cancelled, and again until it has ended.

        Once is not enough: a database ignores an interrupt that comes while the read is between two statements.
        """
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                while not ended.is_set():
                    await self._in_thread(reader.interrupt)
                    with trio.move_on_after(limits.READ_INTERRUPT_SECONDS):
                        await ended.wait()

    @staticmethod
    async def _in_thread(work: Callable[[], T]) -> T:
        # The slots already bound the number of these threads, so each gets a limiter of its own.
        return await trio.to_thread.run_sync(work, limiter=trio.CapacityLimiter(1))

    def close(self) -> None:
        """Close all idle connections; those in use close when their read ends."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def _capture(read: Callable[[Reader], T], reader: Reader) -> T | Exception:
    """The result of a read, or its error as a value, because the nursery would put a raised one into a group."""
    try:
        return read(reader)
    except Exception as error:
        return error
