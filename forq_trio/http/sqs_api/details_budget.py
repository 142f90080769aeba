"""How much memory the details of queues use: those of all queues are in memory, with their settings.

As the number of queues has a bound, details of at most SQS_SHORT_DETAILS_BYTES are free. Longer ones use a budget with
a share for each access token (model/budget.py), so that the policies and tags of one do not stop those of the others.
What there was when the server started is the owner's.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.sqs_api.errors import OVER_LIMIT, SqsError
from forq_trio.model import limits
from forq_trio.model.budget import Budget
from forq_trio.model.holders import HOLDER, OWNER, Holder
from forq_trio.model.messages.send_commands import bytes_of
from forq_trio.model.sqs.types import SqsDetails

Usage = tuple[Holder, int]
"""Whose share a queue's details use, and how many bytes of it."""


class DetailsBudget:
    """Counts the bytes of long details, by the token that wrote them last."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._budget = Budget(limits.SQS_LONG_DETAILS_BYTES_MAX)
        self._queues: dict[str, Usage] = {}  # of those that are long
        self._writers: dict[str, Holder] = {}  # of what is stored of those; the owner where there is none
        self._counting = trio.Lock()
        self._times_counted = 0  # 0: those from before the start are not among the queues

    @asynccontextmanager
    async def admitted(self, queue: str, details: SqsDetails) -> AsyncIterator[None]:
        """Count details while the body stores them. Afterwards what is stored counts: another change may be, too.

        Raises SqsError if they are too long beside those of all queues. Cancelled in the body, they go on to count,
        because they may be stored nevertheless.
        """
        await self._admit(queue, _long_bytes(details))
        try:
            yield
        except trio.Cancelled:
            if queue in self._queues:
                self._writers[queue] = HOLDER.get()
            else:
                self._writers.pop(queue, None)
            raise
        except BaseException:
            self._count_stored(queue)
            raise
        self._writers[queue] = HOLDER.get()
        self._count_stored(queue)

    async def _admit(self, queue: str, size: int) -> None:
        if size and not self._times_counted:
            await self._count()
        if self._use(queue, size):
            return
        await self._count()  # some queues may be gone
        if not self._use(queue, size):
            raise SqsError(OVER_LIMIT, "The policies and tags of all queues are too long together.")

    def _use(self, queue: str, size: int) -> bool:
        """Have a queue use so many bytes of the caller's; False, and nothing is changed, if that is too much."""
        before = self._queues.get(queue, (OWNER, 0))
        if self._set(queue, HOLDER.get(), size):
            return True
        self._set(queue, *before)
        return False

    async def _count(self) -> None:
        """Count what is stored: other clients delete queues, and other servers change them.

        For all requests that wait for a count at the same time, it is done once.
        """
        before = self._times_counted
        async with self._counting:
            if self._times_counted == before:
                await self._count_all()
                self._times_counted += 1

    async def _count_all(self) -> None:
        for number, queue in enumerate(self._broker.known.settings()):
            if number % limits.SQS_QUEUES_LOOKED_AT == 0:
                await trio.lowlevel.checkpoint()
            self._count_stored(queue)
        for queue in self._queues.keys() - self._broker.known.settings().keys():
            self._count_stored(queue)

    def _count_stored(self, queue: str) -> None:
        """Have a queue use what its stored details need, as those of their writer."""
        settings = self._broker.known.settings().get(queue)
        size = 0 if settings is None else _long_bytes(settings.sqs)
        self._set(queue, self._writers.get(queue, OWNER), size)
        if not size:
            self._writers.pop(queue, None)

    def _set(self, queue: str, holder: Holder, size: int) -> bool:
        """Set what a queue uses; False if that is more than this holder may."""
        before, used = self._queues.pop(queue, (holder, 0))
        self._budget.change(before, -used)
        if size:
            self._queues[queue] = holder, size
        return self._budget.change(holder, size)


def _long_bytes(details: SqsDetails | None) -> int:
    if details is None:
        return 0
    size = bytes_of("", details.attributes) + bytes_of("", details.tags)
    size += limits.SQS_DETAIL_BYTES * (len(details.attributes) + len(details.tags))
    return size if size > limits.SQS_SHORT_DETAILS_BYTES else 0
