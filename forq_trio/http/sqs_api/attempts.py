"""ReceiveRequestAttemptId: a receive that is tried again within five minutes gets the same messages.

The receipts are in the memory of this process, so another server, or this one after a restart, answers like a new
receive: then the messages are invisible until their leases end, as if no id had been given.
"""

from collections.abc import Sequence
from typing import NamedTuple

from forq_trio.broker.broker import Broker
from forq_trio.model import limits
from forq_trio.model.budgeted_cache import BudgetedCache
from forq_trio.model.clock import machine_ms
from forq_trio.model.messages.send_commands import bytes_of
from forq_trio.model.messages.types import Delivery

_ATTEMPT_MS = 5 * limits.MINUTE_MS
_ATTEMPT_BYTES = 1_024  # of an attempt besides the texts of its messages


class _Attempt(NamedTuple):
    at_ms: int
    deliveries: tuple[Delivery, ...]


class Attempts:
    """The latest attempts, bounded in bytes."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._known: BudgetedCache[tuple[str, str], _Attempt] = BudgetedCache(limits.SQS_ATTEMPTS_BYTES_MAX)

    def note(self, queue: str, attempt: str | None, deliveries: Sequence[Delivery]) -> None:
        """Remember what an attempt got."""
        if attempt is None or not deliveries:
            return
        size = _ATTEMPT_BYTES + sum(bytes_of(each.content, each.attributes) for each in deliveries)
        self._known.put((queue, attempt), _Attempt(machine_ms(), tuple(deliveries)), size)

    async def again(self, queue: str, attempt: str | None, lease_ms: int | None) -> list[Delivery] | None:
        """What this attempt got before, if all of it can be extended; None for a new attempt."""
        known = None if attempt is None else self._known.get((queue, attempt))
        if known is None or attempt is None:
            return None
        if machine_ms() - known.at_ms <= _ATTEMPT_MS:
            results = await self._broker.extend(queue, list(known.deliveries), lease_ms)
            if all(result.ok for result in results):
                return list(known.deliveries)
        self._known.drop((queue, attempt))
        return None
