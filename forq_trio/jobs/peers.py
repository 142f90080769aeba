"""Listens to other processes on the same database.

The writer looks for news at once when another process made messages ready for somebody here, and in any case once a
second, which costs one short query and suffices while a lost connection is made again. Every five seconds this process
makes itself known on the connection, and hears of the others. It also tells them whom its own batches woke, if the
batches' thread could not.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import trio

from forq_trio.broker.known_processes import KnownProcesses
from forq_trio.model import limits
from forq_trio.model.errors import StorageUnavailable
from forq_trio.model.server.processes import HeardProcess, ProcessReport
from forq_trio.storage.engine import ENDED, Listener
from forq_trio.writer_actor import WriterActor


class Peers:
    """A job: `run` until cancelled. listen: opens a Listener, and may block."""

    name = "peers"

    def __init__(
        self, listen: Callable[[], Listener], writer: WriterActor, processes: KnownProcesses
    ) -> None:
        self._listen = listen
        self._writer = writer
        self._processes = processes
        self._meets_at = 0.0
        self._looks_at = 0.0
        self._rest = trio.CancelScope()

    async def run(self) -> None:
        listener: Listener | None = None
        soon = partial(_soon, trio.lowlevel.current_trio_token(), self._wake)
        self._writer.parked.on_first = self._writer.announced.ready.on_first = self._wake
        try:
            while True:
                try:
                    if listener is None:
                        listener = await trio.to_thread.run_sync(self._listen)
                        listener.on_notice(soon)
                    await self._hear(listener)
                except StorageUnavailable:
                    await _close(listener)
                    listener = None
                    self._writer.catch_up()
                    await trio.sleep(limits.PEERS_LOOK_SECONDS)
        finally:
            with trio.CancelScope(shield=True):
                await _close(listener)

    async def _hear(self, listener: Listener) -> None:
        """Wait until there is something to hear or to tell, or a second has passed. Raises StorageUnavailable."""
        listener.tell(awaited=self._writer.parked.total > 0 or bool(self._writer.announced.ready))
        looks_at = min(self._looks_at, trio.current_time() + listener.rest_seconds)
        self._rest = trio.CancelScope(deadline=looks_at)
        with self._rest:
            await trio.lowlevel.wait_readable(listener.socket)
        if trio.current_time() >= self._meets_at:
            self._processes.heard(*await trio.to_thread.run_sync(self._meet, listener, self._processes.own()))
            self._meets_at = trio.current_time() + limits.PROCESS_REPORT_SECONDS
        queues = listener.heard()  # also what came with the answer
        now = trio.current_time()
        if queues is None or now >= looks_at or any(map(self._is_awaited, queues)):
            self._writer.catch_up(filter(self._writer.parked.count, queues or ()))
            listener.note_look()
            self._looks_at = now + listener.catch_up_seconds

    def _meet(
        self, listener: Listener, own: ProcessReport
    ) -> tuple[Sequence[HeardProcess], Mapping[str, bool]]:
        """Report, and compare the secrets of those who reported. Blocks."""
        heard = listener.meet(own)
        return heard, self._processes.compare(heard)

    def _wake(self) -> None:
        """Wake the job, because there is something to tell or somebody waits."""
        self._rest.cancel()

    def _is_awaited(self, queue: str) -> bool:
        """True if a receiver is parked there, or a task watches it, or the end of a message."""
        if queue == ENDED:
            return bool(self._writer.announced.ended)
        return self._writer.parked.count(queue) > 0 or queue in self._writer.announced.ready


def _soon(token: trio.lowlevel.TrioToken, call: Callable[[], None]) -> None:
    """Have trio's thread call `call`; after the end of trio nothing has to be called."""
    with suppress(trio.RunFinishedError):
        token.run_sync_soon(call, idempotent=True)


async def _close(listener: Listener | None) -> None:
    if listener is not None:
        await trio.to_thread.run_sync(listener.close)
