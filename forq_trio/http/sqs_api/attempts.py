"""ReceiveRequestAttemptId: a receive that is tried again within five minutes gets the same messages.

It does so only if none of them was changed: each is still in process for the same receive, until the same time. So one
that was deleted, given back or received again makes the attempt a new receive, whoever changed it.

The receipts are in the memory of this process, so another server, or this one after a restart, answers like a new
receive: then the messages are invisible until their leases end, as if no id had been given.

All answers of an attempt have the same messages and receipts. An earlier answer often fails late: its connection is
dead, but that shows only after a while. So only the latest answer releases the messages if it does not arrive, and once
they are released, the attempt is a new receive.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from forq_trio.broker.broker import Broker
from forq_trio.http.long_poll import undelivery
from forq_trio.model import limits
from forq_trio.model.budgeted_cache import BudgetedCache
from forq_trio.model.clock import machine_ms
from forq_trio.model.errors import MessageNotFound
from forq_trio.model.messages.send_commands import bytes_of
from forq_trio.model.messages.types import Delivery

_ATTEMPT_MS = limits.DEDUPLICATION_WINDOW_MS_DEFAULT  # of SQS, too, which has one interval for both
_DELIVERY_BYTES = 1_024  # of a message besides its texts


class AttemptAnswer(NamedTuple):
    """The messages of an answer."""

    deliveries: Sequence[Delivery]
    undo: Callable[[], None]  # to be called if the answer does not arrive


class _Answers:
    """The answers of one attempt."""

    def __init__(self) -> None:
        self._latest = 0
        self.released = False  # whether the latest one did not arrive

    def begin(self, release: Callable[[], None]) -> Callable[[], None]:
        """Begin the next answer. Returns what to call if it does not arrive: releases, if it is the latest then."""
        self._latest += 1
        number = self._latest

        def undo() -> None:
            if number == self._latest:
                self.released = True
                release()

        return undo


class _Attempt(NamedTuple):
    at_ms: int
    deliveries: tuple[Delivery, ...]
    answers: _Answers


class Attempts:
    """The latest attempts, bounded in bytes."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._known: BudgetedCache[tuple[str, str], _Attempt] = BudgetedCache(limits.SQS_ATTEMPTS_BYTES_MAX)

    def note(self, queue: str, attempt: str | None, deliveries: Sequence[Delivery]) -> AttemptAnswer:
        """Remember what an attempt got, and forget those of the same client that are too old to be repeated."""
        release = undelivery(self._broker, queue, deliveries)
        if attempt is None or not deliveries:
            return AttemptAnswer(deliveries, release)
        too_old_ms = machine_ms() - _ATTEMPT_MS
        while (oldest := self._known.oldest()) is not None and oldest[1].at_ms < too_old_ms:
            self._known.drop(oldest[0])
        answers = _Answers()
        self._put(queue, attempt, _Attempt(machine_ms(), tuple(deliveries), answers))
        return AttemptAnswer(deliveries, answers.begin(release))

    def _put(self, queue: str, attempt: str, got: _Attempt) -> None:
        size = sum(_DELIVERY_BYTES + bytes_of(each.content, each.attributes) for each in got.deliveries)
        self._known.put((queue, attempt), got, size)

    async def again(self, queue: str, attempt: str | None, lease_ms: int | None) -> AttemptAnswer | None:
        """What this attempt got before, with new leases; None for a new attempt, or if some of it was changed.

        Raises like `Broker.extend`. Then, and if it is cancelled, the messages are released.
        """
        known = None if attempt is None else self._known.get((queue, attempt))
        if known is None or attempt is None:
            return None
        in_time = machine_ms() - known.at_ms <= _ATTEMPT_MS
        if in_time and await self._are_unchanged(queue, known.deliveries) and not known.answers.released:
            # Before the leases are extended: an earlier answer may fail while they are.
            undo = known.answers.begin(undelivery(self._broker, queue, known.deliveries))
            got = await self._extended(queue, known.deliveries, lease_ms, undo)
            if got is not None:
                self._put(queue, attempt, known._replace(deliveries=got))
                return AttemptAnswer(got, undo)
        self._known.drop((queue, attempt))
        return None

    async def _extended(
        self, queue: str, deliveries: Sequence[Delivery], lease_ms: int | None, undo: Callable[[], None]
    ) -> tuple[Delivery, ...] | None:
        """The deliveries with new leases; None if some cannot be extended. undo: called if this fails."""
        try:
            results = await self._broker.extend(queue, list(deliveries), lease_ms)
        except BaseException:
            undo()
            raise
        if not all(result.ok for result in results):
            return None
        ends = [result.lease_until or 0 for result in results]
        return tuple([replace(each, lease_until=end) for each, end in zip(deliveries, ends, strict=True)])

    async def _are_unchanged(self, queue: str, deliveries: Sequence[Delivery]) -> bool:
        """Whether each message is in process as it was delivered. Read before anything is extended."""
        for each in deliveries:
            try:
                found = await self._broker.message(queue, each.id)
            except MessageNotFound:
                return False
            if (found.status, found.attempts) != ("processing", each.attempts):
                return False
            if found.lease_until != each.lease_until:
                return False
        return True
