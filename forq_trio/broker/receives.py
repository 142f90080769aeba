"""Receives messages and settles them: ack, nack, extend, release. A part of `Broker`."""

from collections.abc import Callable, Sequence
from typing import TypeVar, overload

from forq_trio.broker.backends import QueueBackend
from forq_trio.broker.base import BrokerBase
from forq_trio.broker.queue_names import name_queues
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_range, check_text
from forq_trio.model.commands import Command, Nacked, RedrivePolicy
from forq_trio.model.errors import MalformedReceipt, MessageNotFound, OutOfRange, ReceiptNotCurrent
from forq_trio.model.messages.methods import MessageMethods
from forq_trio.model.messages.receipts import (
    ManyReceipts,
    OneReceipt,
    ReceiptResult,
    outcome_of,
    receipts_of,
    refused,
)
from forq_trio.model.messages.settlement_methods import SettlementMethods
from forq_trio.model.messages.types import (
    Delivery,
    Receipt,
    check_message_id,
    check_queue_name,
    token_of_forq,
)
from forq_trio.model.messages.where import Wanted, where_of
from forq_trio.model.results.types import AckResult, check_result

Outcome = bool | int | None
"""The outcome for one receipt: False or None if it is not current; after `extend` the new end of the lease; of `nack` a
`Nacked`."""

OutcomeT = TypeVar("OutcomeT", bool, int | None, Nacked)


class Receives(SettlementMethods, MessageMethods, BrokerBase):
    """Cancellation is that of `Broker`."""

    async def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait_ms: int = limits.WAIT_MS_MAX,
        lease_ms: int | None = None,
        shuffle: bool = False,
        redrive_policy: RedrivePolicy | None = None,
        where: Wanted | None = None,
    ) -> list[Delivery]:
        check_queue_name(queue)
        check_range("max_messages", max_messages, 1, limits.RECEIVE_BATCH_MAX, "max")
        check_range("wait_ms", wait_ms, 0, limits.WAIT_MS_MAX)
        if lease_ms is not None:
            check_range("lease_ms", lease_ms, 0, limits.LEASE_MS_MAX)
        conditions = where_of(where, shuffle=shuffle)
        if (conditions or shuffle) and self.known.rules(queue).strict_groups:
            raise OutOfRange(
                "a queue with strict groups delivers in order only",
                field="where" if conditions else "shuffle",
            )
        if redrive_policy is not None:
            if redrive_policy.max_attempts is not None:
                check_range("max_attempts", redrive_policy.max_attempts, 1, limits.MAX_ATTEMPTS_MAX)
            if redrive_policy.dead_letter_queue:
                check_queue_name(redrive_policy.dead_letter_queue, "deadLetterQueue")
                await name_queues(self._writer, redrive_policy.dead_letter_queue)
        claim = commands.Claim(queue, max_messages, lease_ms, wait_ms, shuffle, redrive_policy, conditions)
        deliveries = await self._backends.of(queue).execute(claim)
        return list(deliveries)

    def undeliver(self, queue: str, receipts: Sequence[str]) -> None:
        """Release messages whose consumer disconnected before they reached it, the attempt uncounted. Does not wait."""
        backend = self._backends.of(queue)
        backend.post(commands.Release(queue, tuple(map(backend.parse_receipt, receipts))))

    @overload
    async def ack(
        self, queue: str | None, receipts: OneReceipt, *, result: AckResult | None = ...
    ) -> ReceiptResult: ...

    @overload
    async def ack(
        self, queue: str | None, receipts: ManyReceipts, *, result: AckResult | None = ...
    ) -> list[ReceiptResult]: ...

    async def ack(
        self, queue: str | None, receipts: OneReceipt | ManyReceipts, *, result: AckResult | None = None
    ) -> ReceiptResult | list[ReceiptResult]:
        if result is not None:
            return outcome_of(receipts, await self._ack_with_result(queue, receipts, result))
        return outcome_of(receipts, await self._ack_all(queue, receipts))

    async def _ack_all(self, queue: str | None, receipts: OneReceipt | ManyReceipts) -> list[ReceiptResult]:
        return await self._settle(queue, receipts, lambda known: commands.Ack(queue, known))

    async def _ack_with_result(
        self, queue: str | None, receipts: OneReceipt | ManyReceipts, result: AckResult
    ) -> list[ReceiptResult]:
        check_result(result, len(receipts_of(receipts)))
        return await self._settle(
            queue,
            receipts,
            lambda known: commands.AckWithResult(queue, known, result.content, result.keep_ms),
        )

    async def _nack_all(
        self,
        queue: str,
        receipts: OneReceipt | ManyReceipts,
        delay_ms: int | None,
        reason: str | None,
        *,
        final: bool,
        max_attempts: int | None,
    ) -> list[ReceiptResult]:
        if delay_ms is not None:
            check_range("delay_ms", delay_ms, 0, limits.NACK_DELAY_MS_MAX)
        if reason is not None:
            check_text("reason", reason, 0, limits.REASON_LENGTH_MAX)
        if max_attempts is not None:
            check_range("max_attempts", max_attempts, 1, limits.MAX_ATTEMPTS_MAX)
        return await self._settle(
            queue,
            receipts,
            lambda known: commands.Nack(
                queue, known, delay_ms, reason, final=final, max_attempts=max_attempts
            ),
        )

    async def _discard_all(
        self, queue: str, receipts: OneReceipt | ManyReceipts, reason: str
    ) -> list[ReceiptResult]:
        check_text("reason", reason, 1, limits.REASON_LENGTH_MAX)
        return await self._settle(
            queue, receipts, lambda known: commands.DiscardMessages(queue, known, reason)
        )

    @overload
    async def extend(
        self, queue: str | None, receipts: OneReceipt, lease_ms: int | None = ...
    ) -> ReceiptResult: ...

    @overload
    async def extend(
        self, queue: str | None, receipts: ManyReceipts, lease_ms: int | None = ...
    ) -> list[ReceiptResult]: ...

    async def extend(
        self, queue: str | None, receipts: OneReceipt | ManyReceipts, lease_ms: int | None = None
    ) -> ReceiptResult | list[ReceiptResult]:
        return outcome_of(receipts, await self._extend_all(queue, receipts, lease_ms))

    async def _extend_all(
        self, queue: str | None, receipts: OneReceipt | ManyReceipts, lease_ms: int | None
    ) -> list[ReceiptResult]:
        length_ms = self.known.rules(queue or "").lease_ms if lease_ms is None else lease_ms
        check_range("lease_ms", length_ms, 0, limits.LEASE_MS_MAX)
        return await self._settle(queue, receipts, lambda known: commands.Extend(queue, known, length_ms))

    async def _release_all(
        self, queue: str, receipts: OneReceipt | ManyReceipts, delay_ms: int
    ) -> list[ReceiptResult]:
        check_range("delay_ms", delay_ms, 0, limits.NACK_DELAY_MS_MAX)
        return await self._settle(queue, receipts, lambda known: commands.Release(queue, known, delay_ms))

    async def ack_message(self, queue: str, message_id: str, receipt: str | None) -> None:
        """Forq's ack of one message. Raises MessageNotFound unless the receipt is current and belongs to the message.

        Without a receipt it removes the message if it is processing, and otherwise does nothing (Forq's guide). A
        receipt that Forq itself gave before its file was migrated is valid for that claim. Raises MalformedMessageId,
        MalformedReceipt, and the errors of `receive`.
        """
        check_queue_name(queue)
        message_id = check_message_id(message_id)
        backend = self._backends.of(queue)
        if receipt is None:
            await backend.execute(commands.AckById(queue, message_id))
        elif (token := token_of_forq(receipt)) is not None:
            _check_settled(await backend.execute(commands.AckById(queue, message_id, token)))
        else:
            command = commands.Ack(queue, (backend.parse_receipt(receipt),), message_id)
            _check_settled(*await backend.execute(command))

    async def nack_message(self, queue: str, message_id: str, receipt: str | None) -> None:
        """Forq's nack of one message, with the back-off by attempt; receipts and errors as for `ack_message`."""
        check_queue_name(queue)
        message_id = check_message_id(message_id)
        backend = self._backends.of(queue)
        if receipt is None:
            await backend.execute(commands.NackById(queue, message_id))
        elif (token := token_of_forq(receipt)) is not None:
            _check_settled(await backend.execute(commands.NackById(queue, message_id, token)))
        else:
            command = commands.Nack(queue, (backend.parse_receipt(receipt),), message_id=message_id)
            (nacked,) = await backend.execute(command)
            _check_settled(nacked is not Nacked.REFUSED)

    async def _settle(
        self,
        queue: str | None,
        receipts: OneReceipt | ManyReceipts,
        command: Callable[[tuple[Receipt, ...]], Command[tuple[OutcomeT, ...]]],
    ) -> list[ReceiptResult]:
        """Apply a command to all receipts at once; malformed ones are left out."""
        if queue is not None:
            check_queue_name(queue)
        texts = receipts_of(receipts)
        check_range("number of receipts", len(texts), 0, limits.RECEIPTS_BATCH_MAX, "receipts")
        backend = self._backends.of(queue)
        parsed = [_parse(backend, text) for text in texts]
        known = tuple(receipt for receipt in parsed if receipt is not None)
        outcomes = iter(await backend.execute_in_parts(known, command))
        return [
            refused(text, MalformedReceipt()) if receipt is None else _result(text, next(outcomes))
            for text, receipt in zip(texts, parsed, strict=True)
        ]


def _check_settled(settled: bool) -> None:
    if not settled:
        raise MessageNotFound("there is no such message, or the receipt is not its current one")


def _parse(backend: QueueBackend, receipt: str) -> Receipt | None:
    try:
        return backend.parse_receipt(receipt)
    except MalformedReceipt:
        return None


def _result(receipt: str, outcome: Outcome) -> ReceiptResult:
    if outcome is False or outcome is None or outcome is Nacked.REFUSED:
        return refused(receipt, ReceiptNotCurrent())
    if outcome is True or isinstance(outcome, Nacked):
        return ReceiptResult(receipt, True, failed=outcome is Nacked.FAILED)
    return ReceiptResult(receipt, True, outcome)
