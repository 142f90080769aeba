"""Methods for those who look through the history of finished messages."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from forq_trio.model.errors import ForqError
from forq_trio.model.logs.history import FinishedMessage, FinishedPage
from forq_trio.model.logs.history_bodies import HistoryFilter
from forq_trio.model.messages.types import Produced


class HistoryMethods(ABC):
    """`history` itself and `history_range`, in `LogMethods`, are for pipelines."""

    @abstractmethod
    async def search_history(
        self, queue: str, wanted: HistoryFilter | None = None, *, before: int | None = None, limit: int = 50
    ) -> FinishedPage:
        """A page (1-100) of finished messages of a queue that match, newest first; reads 10,000 messages at most.

        before: only those with a history id below it. Raises InvalidQueueName, OutOfRange, InvalidAttributes,
        InvalidContent.
        """

    @abstractmethod
    async def finished_message(self, queue: str, message_id: str) -> FinishedMessage:
        """One finished message of a queue, with its content and how it ended.

        Raises InvalidQueueName, MalformedMessageId, MessageNotFound.
        """

    @abstractmethod
    async def requeue_finished(self, queue: str, message_ids: Sequence[str]) -> list[Produced | ForqError]:
        """Send up to 1,000 messages of the history again, each as a new message, and keep them in the history.

        A new message has the content, attributes, priority and group of the old one, but not its key, due time, time to
        live and deduplication id. It goes to the same queue; a former dead letter goes to the queue that it came from.
        Results in the order of the ids: the stored message, or the error. A repeated call sends them once more. Done in
        steps of up to 1 MiB; cancelled, it may have stored those of some steps. Raises InvalidQueueName, OutOfRange,
        and what `receive` raises if the first step fails; the error of a later step is the result of all messages that
        are left.
        """

    @abstractmethod
    async def purge_history(self, queue: str) -> int:
        """Remove all messages of a queue from the history that ended before this call; returns how many.

        Done in steps, between which other calls are served; cancelled, it stops after a step. Raises InvalidQueueName.
        """
