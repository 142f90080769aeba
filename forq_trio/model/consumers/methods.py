"""Methods for consumers of pipelines, and their numbered leases."""

from abc import ABC, abstractmethod

from forq_trio.model.consumers.bodies import ConsumerInfo, ConsumerLease, LeasePage
from forq_trio.model.limits import CONSUMER_LEASE_MESSAGES_DEFAULT


class ConsumerMethods(ABC):
    """A consumer belongs to who opened it last."""

    @abstractmethod
    async def open_consumer(self, queue: str, name: str, *, idle_seconds: int | None = None) -> ConsumerInfo:
        """Open a consumer, and create it if there is none. From now on its older generations are refused.

        idle_seconds: its open lease is given back when the consumer is not used for this long (60 s to 366 days); None
        for the previous value, or a day. Raises TooManyConsumers.
        """

    @abstractmethod
    async def lease(
        self,
        queue: str,
        name: str,
        generation: int,
        number: int,
        *,
        acknowledge: int | None = None,
        acknowledge_made_at: int | None = None,
        max_messages: int = CONSUMER_LEASE_MESSAGES_DEFAULT,
        max_bytes: int | None = None,
        wait_ms: int = 0,
        ahead: bool = False,
    ) -> ConsumerLease:
        """Acknowledge the leases up to `acknowledge`, make lease `number`, and return it once it is complete.

        Repeatable: a number always has the same messages. It gets `max_messages` (1-1,000,000) at most, and is complete
        with `max_bytes` (1 GiB at most) of lines, or when no more are ready. If none is ready it waits up to `wait_ms`
        (0-30,000) for the first one; if none comes, the result has no messages, and the lease is not made. A client
        makes several requests for a long one. ahead: it may follow a complete lease that is not acknowledged yet, one
        at most; it is complete with `max_messages` or `max_bytes` only, else `waiting`, and a call without `ahead` adds
        what is ready then. acknowledge_made_at: see `made_at` of `acknowledge`. Raises ConsumerNotFound,
        ConsumerFenced, OtherLease, LeaseOutOfOrder, LeaseGone, LeasesFull, StorageFull.
        """

    @abstractmethod
    async def lease_page(
        self, queue: str, name: str, number: int, page: int = 0, pages: int = 1, *, made_at: int | None = None
    ) -> LeasePage:
        """The messages of `pages` (1-1,000) pages of a lease, fewer if they have more than 4 MiB; repeatable.

        made_at: `ConsumerLease.made_at` of the lease that is wanted. Raises ConsumerNotFound, OtherLease for one that
        was made at another time, LeaseOutOfOrder for one that is not made yet, LeaseGone, and what reads raise.
        """

    @abstractmethod
    async def acknowledge(
        self, queue: str, name: str, generation: int, number: int, *, made_at: int | None = None
    ) -> ConsumerInfo:
        """Remove the messages of the open lease, which is `number`; does nothing for one that was acknowledged before.

        made_at: `ConsumerLease.made_at` of the lease that was read. A server that was restored from a backup, or
        another one, uses its number for other messages: these are not removed then. None: whichever lease it is.

        Raises ConsumerNotFound, ConsumerFenced, OtherLease for one that was made at another time, LeaseGone for one
        that was given back, and LeaseOutOfOrder for one that is not made or not complete.
        """

    @abstractmethod
    async def release_consumer(self, queue: str, name: str) -> ConsumerInfo:
        """Give the messages of the open lease back, without counting the attempt; it can no longer be read.

        If there is an open lease, the generation grows, and clients have to open the consumer again. A lease whose
        acknowledgement has begun is acknowledged instead. Raises ConsumerNotFound.
        """

    @abstractmethod
    async def delete_consumer(self, queue: str, name: str) -> None:
        """Give the messages of the open lease back, and delete the consumer.

        From the first moment on its generation is refused, so that nobody goes on with it. Raises ConsumerNotFound, and
        ConsumerFenced if it is opened again before it is forgotten.
        """

    @abstractmethod
    async def consumers(self, queue: str | None = None) -> list[ConsumerInfo]:
        """The consumers of a queue (None: of all) by queue and name."""

    @abstractmethod
    async def consumer(self, queue: str, name: str) -> ConsumerInfo:
        """One consumer. Raises ConsumerNotFound."""
