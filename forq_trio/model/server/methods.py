"""Methods for the server itself: its health, and compactions, which give free pages of its file back to the disk."""

from abc import ABC, abstractmethod

from forq_trio.model.server.compaction import CompactionInfo


class ServerMethods(ABC):
    """Those for compactions return the state of the compaction."""

    @abstractmethod
    async def healthcheck(self) -> None:
        """Return if the server and its database work; raise a ServiceError if not."""

    @abstractmethod
    async def compaction_info(self) -> CompactionInfo:
        """The running compaction, or the last one since the start of the server, and how much of its file is free.

        A client needs the secret, or a token with the scope admin for all queues; so it does for the three below.
        """

    @abstractmethod
    async def start_compaction(self) -> CompactionInfo:
        """Begin to give all free pages of the file back to the disk, or resume a paused compaction.

        It works in small steps between other calls, and continues after this call. A requested compaction that runs
        already is unchanged. Raises CompactionImpossible, Stopping.
        """

    @abstractmethod
    async def pause_compaction(self) -> CompactionInfo:
        """Pause the compaction until it is started again; nothing happens if none runs."""

    @abstractmethod
    async def stop_compaction(self) -> CompactionInfo:
        """End the compaction; pages that it gave back stay given back."""
