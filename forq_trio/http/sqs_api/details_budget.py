"""How much memory the details of queues use: those of all queues are in memory, with their settings.

As the number of queues has a bound, details of at most SQS_SHORT_DETAILS_BYTES are free. Longer ones use a budget with
a share for each access token (model/budget.py), so that the policies and tags of one do not stop those of the others.
What there was when the server started is the owner's.
"""

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
        self._counted = False  # whether those from before the start are among them

    async def admit(self, queue: str, details: SqsDetails) -> Usage:
        """Count details before they are stored; returns what was counted before, for `restore`.

        Raises SqsError if they are too long beside those of all queues.
        """
        size = _long_bytes(details)
        if size and not self._counted:
            self._counted = True
            await self._count()
        before = self._use(queue, size)
        if before is None:
            await self._count()  # some queues may be gone
            before = self._use(queue, size)
        if before is None:
            raise SqsError(OVER_LIMIT, "The policies and tags of all queues are too long together.")
        return before

    def restore(self, queue: str, before: Usage) -> None:
        """Count again what was counted before details that were not stored."""
        self._set(queue, *before)

    def _use(self, queue: str, size: int) -> Usage | None:
        """Have a queue use so many bytes of the caller's; returns what it used before. None if that is too much."""
        before = self._queues.get(queue, (OWNER, 0))
        if self._set(queue, HOLDER.get(), size):
            return before
        self.restore(queue, before)
        return None

    async def _count(self) -> None:
        """Count what is stored: other clients delete queues, and other servers change them."""
        stored = self._broker.known.settings()
        for number, (queue, settings) in enumerate(stored.items()):
            if number % limits.SQS_QUEUES_LOOKED_AT == 0:
                await trio.lowlevel.checkpoint()
            holder, _ = self._queues.get(queue, (OWNER, 0))
            self._set(queue, holder, _long_bytes(settings.sqs))
        for queue in self._queues.keys() - stored.keys():
            self._set(queue, OWNER, 0)

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
    return size if size > limits.SQS_SHORT_DETAILS_BYTES else 0
