"""Methods that settle what was received: ack, nack, discard, extend, release.

Each has an overload for one receipt and one for several, so they are here whole; who implements them settles lists.
"""

from abc import ABC, abstractmethod
from typing import overload

from forq_trio.model.messages.receipts import ManyReceipts, OneReceipt, ReceiptResult, outcome_of
from forq_trio.model.results.types import AckResult


class SettlementMethods(ABC):
    """One receipt, or its Delivery, has a result, and is refused by an error; several have a list."""

    @overload
    async def ack(
        self, queue: str, receipts: OneReceipt, *, result: AckResult | None = ...
    ) -> ReceiptResult: ...

    @overload
    async def ack(
        self, queue: str, receipts: ManyReceipts, *, result: AckResult | None = ...
    ) -> list[ReceiptResult]: ...

    async def ack(
        self, queue: str, receipts: OneReceipt | ManyReceipts, *, result: AckResult | None = None
    ) -> ReceiptResult | list[ReceiptResult]:
        """Remove a received message, or up to 1,000 of them.

        result: what came of each of them, stored with the finished message for those who wait (`message_result`).

        One receipt, or its Delivery: raises ReceiptNotCurrent if it is no longer current, MalformedReceipt if it has
        not the form of one. Several: returns a result for each, in their order, also for refused ones. Raises
        OutOfRange for too many, TypeError for anything but a receipt, and what `receive` raises.
        """
        if result is not None:
            return outcome_of(receipts, await self._ack_with_result(queue, receipts, result))
        return outcome_of(receipts, await self._ack_all(queue, receipts))

    @overload
    async def nack(
        self,
        queue: str,
        receipts: OneReceipt,
        *,
        delay_ms: int | None = ...,
        reason: str | None = ...,
        final: bool = ...,
        max_attempts: int | None = ...,
    ) -> ReceiptResult: ...

    @overload
    async def nack(
        self,
        queue: str,
        receipts: ManyReceipts,
        *,
        delay_ms: int | None = ...,
        reason: str | None = ...,
        final: bool = ...,
        max_attempts: int | None = ...,
    ) -> list[ReceiptResult]: ...

    async def nack(
        self,
        queue: str,
        receipts: OneReceipt | ManyReceipts,
        *,
        delay_ms: int | None = None,
        reason: str | None = None,
        final: bool = False,
        max_attempts: int | None = None,
    ) -> ReceiptResult | list[ReceiptResult]:
        """Give messages back after a failed attempt, for `delay_ms` (None: the back-off by attempt).

        A message whose attempts are used up fails instead and goes to the dead-letter queue; final: so it does now,
        however many are left. max_attempts: its own bound from now on, instead of its queue's; None: it stays. Results
        like `ack`, with `failed` where a message has failed. Raises InvalidContent for a reason that UTF-8 cannot
        carry, and what `ack` raises.
        """
        results = await self._nack_all(
            queue, receipts, delay_ms, reason, final=final, max_attempts=max_attempts
        )
        return outcome_of(receipts, results)

    @overload
    async def discard(self, queue: str, receipts: OneReceipt, *, reason: str) -> ReceiptResult: ...

    @overload
    async def discard(self, queue: str, receipts: ManyReceipts, *, reason: str) -> list[ReceiptResult]: ...

    async def discard(
        self, queue: str, receipts: OneReceipt | ManyReceipts, *, reason: str
    ) -> ReceiptResult | list[ReceiptResult]:
        """End received messages that no attempt can process: they neither come again nor become dead letters.

        reason: 1 to 1,024 characters; the history, where it is on, keeps them as discarded with it as their last error.
        Results like `ack`. Raises InvalidContent for a reason that UTF-8 cannot carry, and what `ack` raises.
        """
        return outcome_of(receipts, await self._discard_all(queue, receipts, reason))

    @overload
    async def extend(self, queue: str, receipts: OneReceipt, lease_ms: int | None = ...) -> ReceiptResult: ...

    @overload
    async def extend(
        self, queue: str, receipts: ManyReceipts, lease_ms: int | None = ...
    ) -> list[ReceiptResult]: ...

    async def extend(
        self, queue: str, receipts: OneReceipt | ManyReceipts, lease_ms: int | None = None
    ) -> ReceiptResult | list[ReceiptResult]:
        """Let leases end `lease_ms` (None: the queue's lease) from now; each result has the new end.

        Results and errors like `ack`.
        """
        return outcome_of(receipts, await self._extend_all(queue, receipts, lease_ms))

    @overload
    async def release(self, queue: str, receipts: OneReceipt, *, delay_ms: int = ...) -> ReceiptResult: ...

    @overload
    async def release(
        self, queue: str, receipts: ManyReceipts, *, delay_ms: int = ...
    ) -> list[ReceiptResult]: ...

    async def release(
        self, queue: str, receipts: OneReceipt | ManyReceipts, *, delay_ms: int = 0
    ) -> ReceiptResult | list[ReceiptResult]:
        """Give messages back unprocessed, the attempt uncounted, after `delay_ms`. Results and errors like `ack`."""
        return outcome_of(receipts, await self._release_all(queue, receipts, delay_ms))

    @abstractmethod
    async def _ack_all(self, queue: str, receipts: OneReceipt | ManyReceipts) -> list[ReceiptResult]: ...

    @abstractmethod
    async def _ack_with_result(
        self, queue: str, receipts: OneReceipt | ManyReceipts, result: AckResult
    ) -> list[ReceiptResult]: ...

    @abstractmethod
    async def _nack_all(
        self,
        queue: str,
        receipts: OneReceipt | ManyReceipts,
        delay_ms: int | None,
        reason: str | None,
        *,
        final: bool,
        max_attempts: int | None,
    ) -> list[ReceiptResult]: ...

    @abstractmethod
    async def _discard_all(
        self, queue: str, receipts: OneReceipt | ManyReceipts, reason: str
    ) -> list[ReceiptResult]: ...

    @abstractmethod
    async def _extend_all(
        self, queue: str, receipts: OneReceipt | ManyReceipts, lease_ms: int | None
    ) -> list[ReceiptResult]: ...

    @abstractmethod
    async def _release_all(
        self, queue: str, receipts: OneReceipt | ManyReceipts, delay_ms: int
    ) -> list[ReceiptResult]: ...
