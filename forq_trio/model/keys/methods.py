"""Methods for keyed messages."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Unpack

from forq_trio.model.errors import ForqError
from forq_trio.model.keys.types import Mode, Offered, Offering, OfferOptions
from forq_trio.model.limits import BROWSE_PAGE_MAX
from forq_trio.model.messages.types import KeyedMessage, KeyPage


class KeyMethods(ABC):
    """A key is unique per queue and kind while its message is pending."""

    @abstractmethod
    async def offer(
        self,
        queue: str,
        key: str,
        content: str,
        *,
        kind: str = "",
        mode: Mode = "createOrUpdate",
        max_wait_ms: int | None = None,
        **options: Unpack[OfferOptions],
    ) -> Offered:
        """Store a message under a key, or change the one that is pending, as `mode` says; returns once it is durable.

        mode: what happens where the key is pending, see `Mode`. max_wait_ms: with debounce, which needs delay_ms: how
        long after the first offer the message is due at the latest; None for no bound. Options: the members of
        `Offering`, which are those of `produce` but deduplication.

        Raises InvalidKey, InvalidKind, InvalidRequest (the mode, or what does not go with it), what `produce` raises
        for a message, InvalidQueueName, ProduceToDeadLetterQueue, KeyExists (of create), QueueFull, Overloaded,
        Stopping, StorageUnavailable (nothing stored) or OutcomeUnknown.
        """

    @abstractmethod
    async def offer_many(self, queue: str, messages: Sequence[Offering]) -> list[Offered | ForqError]:
        """Make up to 1,000 offers (4 MiB) in one commit, one after the other: a key may come twice.

        Results in the order of the offers; for a refused one the error that `offer` would raise. Raises like `offer`.
        Where they replace more than 1 MiB it is several commits: after an error the first ones may be stored.
        """

    @abstractmethod
    async def keyed_messages(
        self,
        queue: str,
        *,
        prefix: str = "",
        kind: str | None = None,
        after: str | None = None,
        limit: int = BROWSE_PAGE_MAX,
    ) -> KeyPage:
        """A page (1-100) of the pending messages whose keys begin with `prefix`, by kind and key.

        kind: None for all. after: the `next` of the page before. A page may be short although there is a next one.
        Raises InvalidQueueName, InvalidKey, InvalidKind, OutOfRange, InvalidRequest, and what reads raise.
        """

    @abstractmethod
    async def keyed_message(self, queue: str, key: str, kind: str = "") -> KeyedMessage | None:
        """The pending message of a key in whatever state, and what waits behind it; None for none. Changes nothing.

        Raises InvalidQueueName, InvalidKey, InvalidKind, and what reads raise.
        """

    @abstractmethod
    async def contains_key(self, queue: str, key: str, kind: str = "") -> bool:
        """Whether a message with this key is pending. Raises like `keyed_message`."""

    @abstractmethod
    async def reschedule_key(
        self,
        queue: str,
        key: str,
        *,
        kind: str = "",
        process_after: int | None = None,
        delay_ms: int | None = None,
        once_more: bool = False,
    ) -> Offered:
        """Move the due time of a key's message, or with once_more of what waits behind it; the rest stays as it is.

        Raises what `keyed_message` raises; InvalidRequest without a time, and what sends raise for one; KeyNotFound;
        MessageInFlight for a message in process; and what `offer` raises when nothing was changed.
        """

    @abstractmethod
    async def ack_revision(self, queue: str, key: str, revision: int, kind: str = "") -> bool:
        """Remove the message of a key, in whatever state, unless it was changed since it had this revision.

        A delivery in between does not matter, and its receipt is void then. False where it was changed or is gone.
        Raises like `keyed_message`.
        """

    @abstractmethod
    async def drop_key(self, queue: str, key: str, kind: str = "", *, once_more: bool = False) -> bool:
        """Remove the message of a key, also one in process, and what waits behind it; with once_more only the latter.

        False where there is none. Raises like `keyed_message`.
        """

    @abstractmethod
    async def drop_keys(self, queue: str, kind: str, *, confirm: str) -> int:
        """Remove all messages of a queue that have a key of this kind; returns how many. Done in steps, like `purge`.

        confirm: the name of the queue, else WrongPhrase, and nothing is removed. Raises InvalidQueueName,
        QueueNotFound, InvalidKind.
        """
