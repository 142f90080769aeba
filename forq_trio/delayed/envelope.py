"""What a poll or a read returns: the payload, what is known about its delivery, and the acknowledgement."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")


class DeliveryType(StrEnum):
    """Whether anybody got this payload of the key before."""

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
    _retry: Callable[[timedelta, str | None], Awaitable[bool]] | None = field(
        default=None, repr=False, compare=False
    )

    async def retry(self, delay: timedelta, reason: str | None = None) -> bool:
        """Deliver the message again after a delay of 0 to 12 h, unless it was updated since: the newer one comes then.

        False where it was updated, acknowledged or delivered again: nothing was changed. reason: stored as its last
        error. Raises QueueUnavailable, OutOfRange; TypeError for a message that was read, which nobody has in process.
        """
        if self._retry is None:
            raise TypeError("only a message that was polled can be delivered again")
        return await self._retry(delay, reason)

    async def acknowledge(self) -> None:
        """Remove the message, unless it was updated, or delivered again, since; then do nothing.

        A second time does nothing. Raises QueueUnavailable. Cancelled, it may be done or not.
        """
        await self._acknowledge()


@dataclass(frozen=True)
class BatchEnvelope(Generic[T]):
    """Messages that were polled together, in the order of their times; perhaps none.

    timestamp: of the poll, None where there are none.
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
        """REDELIVERY if any of them is one."""
        again = any(each.delivery_type is DeliveryType.REDELIVERY for each in self.messages)
        return DeliveryType.REDELIVERY if again else DeliveryType.FIRST

    @property
    def timestamp(self) -> datetime | None:
        return self.messages[0].timestamp if self.messages else None

    async def acknowledge(self) -> None:
        """Acknowledge all of them, each like `AckEnvelope.acknowledge`."""
        await self._acknowledge()
