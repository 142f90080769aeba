"""Compactions on request, which give free pages of the file back to the disk. A part of `Broker`."""

from typing import Protocol

import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.model.server.compaction import CompactionInfo
from forq_trio.model.server.methods import ServerMethods


class CompactionTask(Protocol):
    """The job that compacts; there is only one."""

    def state(self) -> CompactionInfo: ...

    def start(self, started_by: str | None = None) -> CompactionInfo: ...

    def pause(self) -> CompactionInfo: ...

    def stop(self) -> CompactionInfo: ...


class Compactions(ServerMethods, BrokerBase):
    """Each method returns the state of the compaction. If a call is cancelled, nothing happens."""

    _compaction: CompactionTask

    async def compaction_info(self) -> CompactionInfo:
        await trio.lowlevel.checkpoint()
        return self._compaction.state()

    async def start_compaction(self, *, started_by: str | None = None) -> CompactionInfo:
        await trio.lowlevel.checkpoint()
        return self._compaction.start(started_by)

    async def pause_compaction(self) -> CompactionInfo:
        await trio.lowlevel.checkpoint()
        return self._compaction.pause()

    async def stop_compaction(self) -> CompactionInfo:
        await trio.lowlevel.checkpoint()
        return self._compaction.stop()
