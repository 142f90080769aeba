"""Compactions on request: free pages of the file are given back. A part of `Broker`."""

from typing import Protocol

import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.wire.compaction import CompactionInfo


class CompactionTask(Protocol):
    """The job that does it, of which there is one."""

    def state(self) -> CompactionInfo: ...

    def start(self, started_by: str | None = None) -> CompactionInfo: ...

    def pause(self) -> CompactionInfo: ...

    def stop(self) -> CompactionInfo: ...


class Compactions(BrokerBase):
    """Each method returns the state of the compaction; if a call is cancelled, nothing happens."""

    _compaction: CompactionTask

    async def compaction_info(self) -> CompactionInfo:
        """The running compaction, or the last one since the start, and how much of the file is free."""
        await trio.lowlevel.checkpoint()
        return self._compaction.state()

    async def start_compaction(self, *, started_by: str | None = None) -> CompactionInfo:
        """Begin to give all free pages back to the disk, or resume a paused compaction.

        It works in small steps between other calls, and continues after this call. started_by: the name of an access
        token, None for the server's secret. Raises CompactionImpossible, Stopping.
        """
        await trio.lowlevel.checkpoint()
        return self._compaction.start(started_by)

    async def pause_compaction(self) -> CompactionInfo:
        """Pause the compaction until it is started again; nothing happens if none runs."""
        await trio.lowlevel.checkpoint()
        return self._compaction.pause()

    async def stop_compaction(self) -> CompactionInfo:
        """End the compaction; pages that it gave back stay given back."""
        await trio.lowlevel.checkpoint()
        return self._compaction.stop()
