"""The result of a poll or a read: the payload, the facts about its delivery, and the means to acknowledge it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

from forq_trio.model.durations import Duration

T = TypeVar("T")


class DeliveryType(StrEnum):
    """Whether this payload of the key was delivered before."""

    FIRST = "first"
    REDELIVERY = "redelivery"


@dataclass(frozen=True)
class AckEnvelope(Generic[T]):
    """A message that was polled or read."""

    payload: T
    message_id: str  # its key
    delivery_type: DeliveryType
    timestamp: datetime  # when it was polled, by the server's clock, or read, by the queue's
    source: str  # the name of the queue
    _acknowledge: Callable[[], Awaitable[None]] = field(repr=False, compare=False)
    _retry: Callable[[Duration, str | None], Awaitable[bool]] | None = field(
        default=None, repr=False, compare=False
    )

    async def retry(self, delay: Duration, reason: str | None = None) -> bool:
        """Deliver the message again after a delay of 0 to 30 days, unless it was updated since; then the update is
        delivered.

        False if it was updated, acknowledged or delivered again meanwhile: then nothing was changed. reason: stored as
        its last error. Raises QueueUnavailable, OutOfRange; TypeError for a message that was read and not polled.
        """
        if self._retry is None:
            raise TypeError("only a message that was polled can be delivered again")
        return await self._retry(delay, reason)

    async def acknowledge(self) -> None:
        """Remove the message, unless it was updated or delivered again since.

        A second call does nothing. Raises QueueUnavailable. Cancelled, the message may be removed or not.
        """
        await self._acknowledge()


@dataclass(frozen=True)
class BatchEnvelope(Generic[T]):
    """Messages that were polled together, in the order of their times; perhaps none.

    timestamp: when they were polled; None if there are no messages.
    """

    messages: tuple[AckEnvelope[T], ...]
    source: str
    _acknowledge: Callable[[], Awaitable[None]] = field(repr=False, compare=False)

    @property
    def payload(self) -> list[T]:
        """The payloads."""
        return [each.payload for each in self.messages]

    @property
    def delivery_type(self) -> DeliveryType:
        """REDELIVERY if any of the messages is one."""
        again = any(each.delivery_type is DeliveryType.REDELIVERY for each in self.messages)
        return DeliveryType.REDELIVERY if again else DeliveryType.FIRST

    @property
    def timestamp(self) -> datetime | None:
        return self.messages[0].timestamp if self.messages else None

    async def acknowledge(self) -> None:
        """Acknowledge all of them, each like `AckEnvelope.acknowledge`."""
        await self._acknowledge()
