"""Other processes on the same database: has the writer look at once where they woke somebody here, and once a second.

The look costs one short query. A connection that is lost is made anew: until then there is the look. Every five seconds
this process makes itself known on that connection, and hears of the others.
"""

from collections.abc import Callable

import trio

from forq_trio.broker.known_processes import KnownProcesses
from forq_trio.model import limits
from forq_trio.model.errors import StorageUnavailable
from forq_trio.storage.engine import Listener
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

    async def run(self) -> None:
        listener: Listener | None = None
        try:
            while True:
                try:
                    if listener is None:
                        listener = await trio.to_thread.run_sync(self._listen)
                    await self._hear(listener)
                except StorageUnavailable:
                    await _close(listener)
                    listener = None
                    self._writer.look()
                    await trio.sleep(limits.PEERS_LOOK_SECONDS)
        finally:
            with trio.CancelScope(shield=True):
                await _close(listener)

    async def _hear(self, listener: Listener) -> None:
        """Wait until there is something to hear, or until it is time to look. Raises StorageUnavailable."""
        with trio.move_on_at(self._looks_at):
            await trio.lowlevel.wait_readable(listener.socket)
        if trio.current_time() >= self._meets_at:
            self._processes.heard(await trio.to_thread.run_sync(listener.meet, self._processes.own()))
            self._meets_at = trio.current_time() + limits.PROCESS_REPORT_SECONDS
        queues = listener.heard()  # also what came with the answer
        now = trio.current_time()
        if queues is None or now >= self._looks_at or any(map(self._is_awaited, queues)):
            self._writer.look()
            self._looks_at = now + listener.look_seconds

    def _is_awaited(self, queue: str) -> bool:
        """True if a receiver is parked there, or a task watches it."""
        return self._writer.parked.count(queue) > 0 or queue in self._writer.watches


async def _close(listener: Listener | None) -> None:
    if listener is not None:
        await trio.to_thread.run_sync(listener.close)
