"""Methods for relays of outboxes, and for messages that were set aside."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from forq_trio.model import limits
from forq_trio.model.messages.set_aside import SetAside
from forq_trio.model.outboxes.types import OutboxPosition, RelayedMessage


class OutboxMethods(ABC):
    """`forq_trio.outbox.Relay` calls the first two."""

    @abstractmethod
    async def relay_outbox(
        self, outbox: str, after: int, messages: Sequence[RelayedMessage]
    ) -> OutboxPosition:
        """Store the next messages of an outbox with its position; returns once they are durable.

        They are one commit; if other calls wait, several, each with a quarter of the page and its position. After a
        ServiceError the first messages may be stored: then a repeated call returns the position. A repeated call stores
        nothing twice.

        outbox: its id, 1 to 128 characters. after: the position that the caller believes is stored; 0 for a new outbox.
        If the stored position differs, nothing is done, and it is returned. messages: at most 1,000, by growing ids,
        the first above `after`. They are stored in this order up to the first that cannot be stored, which the answer
        names: with the code of a CallerError it will never be, with that of a ServiceError perhaps later. One that the
        caller's key may not send is refused with Forbidden.

        An outbox belongs to the key that relayed it first; the server's secret may relay every one.

        Raises InvalidName, OutOfRange, Forbidden for the outbox of another key, TooManyOutboxes, and what `produce`
        raises for the storage.
        """

    @abstractmethod
    async def outbox_position(self, outbox: str) -> OutboxPosition:
        """How far an outbox was relayed; the position 0 for one that is not known.

        Raises InvalidName, and Forbidden for the outbox of another key.
        """

    @abstractmethod
    async def set_aside(
        self, *, after: int = 0, limit: int = limits.SET_ASIDE_PAGE_DEFAULT
    ) -> list[SetAside]:
        """Messages of forq.send that were refused for good, by id, behind `after`. None with a file.

        limit: 1 to 1,000; a page is shorter where they have many bytes, and empty only at the end. Raises OutOfRange.
        """

    @abstractmethod
    async def retry_set_aside(self, ids: Sequence[int]) -> int:
        """Send again messages that were set aside, behind all others; returns how many there were of these.

        ids: at most 1,000. Raises OutOfRange. A call that fails, or is cancelled, may have done it for the first ones.
        """

    @abstractmethod
    async def delete_set_aside(self, ids: Sequence[int]) -> int:
        """Delete messages that were set aside, for good; returns how many there were of these.

        Raises like `retry_set_aside`.
        """
