"""The method for those who wait for a result."""

from abc import ABC, abstractmethod

from forq_trio.model.results.types import MessageResult


class ResultMethods(ABC):
    """A result is given by `SettlementMethods.ack`."""

    @abstractmethod
    async def message_result(self, queue: str, message_id: str, *, wait_ms: int = 0) -> MessageResult:
        """How a message ended, and its result; waits up to `wait_ms` (0-30,000) for the end.

        queue: where it was sent to, or was redriven to. Its `state` is "waiting" if it has not ended. Raises
        InvalidQueueName, MalformedMessageId, OutOfRange; MessageNotFound if nothing is known of it: there was no such
        message, or it was redriven to another queue, or it ended without a result while the history was off, or it is
        no longer stored. Cancelled, nothing happens.
        """
