"""DeleteMessage and ChangeMessageVisibility, alone and in batches.

In a standard queue the receipt of any receive will do, as on AWS; in a FIFO queue only the latest one, while it lasts.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from forq_trio.broker.broker import Broker
from forq_trio.http.sqs_api.batches import EntryT, check_entries, failed
from forq_trio.http.sqs_api.caller import SqsCaller
from forq_trio.http.sqs_api.errors import INVALID_RECEIPT, SqsError, invalid, missing, shown
from forq_trio.http.sqs_api.messages import in_range
from forq_trio.http.sqs_api.names import SqsQueue
from forq_trio.http.sqs_api.shapes import (
    ChangeVisibilityBatchRequest,
    ChangeVisibilityRequest,
    DeleteMessageBatchRequest,
    DeleteMessageRequest,
    DoneBatchAnswer,
    DoneEntry,
    Nothing,
    VisibilityEntry,
)
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.commands import Claims
from forq_trio.model.errors import MalformedReceipt
from forq_trio.model.messages.types import Receipt

_EXPIRED = "The receipt handle has expired."
_GONE = "Message does not exist or is not available for visibility timeout change."

ItemT = TypeVar("ItemT")


class SqsSettling:
    """The operations on received messages."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def delete(self, caller: SqsCaller, asked: DeleteMessageRequest) -> Nothing:
        queue = caller.queue(self._broker, asked.queue_url, Scope.CONSUME)
        _raise_first(await self._delete(queue, [_receipt(asked.receipt_handle)]))
        return Nothing()

    async def delete_batch(self, caller: SqsCaller, asked: DeleteMessageBatchRequest) -> DoneBatchAnswer:
        queue = caller.queue(self._broker, asked.queue_url, Scope.CONSUME)
        entries = check_entries(asked.entries, "DeleteMessageBatch")
        return await _each(
            entries, lambda entry: _receipt(entry.receipt_handle), lambda known: self._delete(queue, known)
        )

    async def change_visibility(self, caller: SqsCaller, asked: ChangeVisibilityRequest) -> Nothing:
        queue = caller.queue(self._broker, asked.queue_url, Scope.CONSUME)
        _raise_first(await self._extend(queue, [_visibility(asked)]))
        return Nothing()

    async def change_visibility_batch(
        self, caller: SqsCaller, asked: ChangeVisibilityBatchRequest
    ) -> DoneBatchAnswer:
        queue = caller.queue(self._broker, asked.queue_url, Scope.CONSUME)
        entries = check_entries(asked.entries, "ChangeMessageVisibilityBatch")
        return await _each(entries, _visibility, lambda known: self._extend(queue, known))

    async def _delete(self, queue: SqsQueue, receipts: Sequence[Receipt]) -> list[SqsError | None]:
        """Delete messages; what is deleted already counts as deleted. In a FIFO queue a receipt may have expired."""
        done = await self._broker.ack_claims(queue.house_name, receipts, _claims(queue))
        if not queue.is_fifo or all(done):
            return [None] * len(receipts)
        where = await self._broker.lists.queues_of([str(receipt) for receipt in receipts])
        return [
            None if ok or place != queue.house_name else _expired(receipt)
            for receipt, ok, place in zip(receipts, done, where, strict=True)
        ]

    async def _extend(self, queue: SqsQueue, wanted: Sequence[tuple[Receipt, int]]) -> list[SqsError | None]:
        """Have messages become visible again in so many seconds."""
        results: dict[Receipt, int | None] = {}
        for seconds in {seconds for _, seconds in wanted}:
            receipts = [receipt for receipt, each in wanted if each == seconds]
            ends = await self._broker.extend_claims(
                queue.house_name, receipts, seconds * limits.SECOND_MS, _claims(queue)
            )
            results |= dict(zip(receipts, ends, strict=True))
        refuse = _expired if queue.is_fifo else _gone
        return [refuse(receipt) if results[receipt] is None else None for receipt, _ in wanted]


def _claims(queue: SqsQueue) -> Claims:
    return Claims.LEASED if queue.is_fifo else Claims.ANY


async def _each(
    entries: Sequence[tuple[str, EntryT]],
    read: Callable[[EntryT], ItemT],
    carry_out: Callable[[Sequence[ItemT]], Awaitable[Sequence[SqsError | None]]],
) -> DoneBatchAnswer:
    """Carry out the entries that can be read, in one go, and answer each."""
    accepted: list[tuple[str, ItemT]] = []
    failures = []
    for entry_id, entry in entries:
        try:
            accepted.append((entry_id, read(entry)))
        except SqsError as error:
            failures.append(failed(entry_id, error))
    errors = await carry_out([item for _, item in accepted]) if accepted else ()
    successful = []
    for (entry_id, _), refused in zip(accepted, errors, strict=True):
        if refused is None:
            successful.append(DoneEntry(entry_id))
        else:
            failures.append(failed(entry_id, refused))
    return DoneBatchAnswer(successful, failures)


def _raise_first(errors: Sequence[SqsError | None]) -> None:
    for error in errors:
        if error is not None:
            raise error


def _receipt(handle: str | None) -> Receipt:
    if not handle:
        raise missing("ReceiptHandle")
    try:
        return Receipt.parse(handle)
    except MalformedReceipt:
        text = f'The input receipt handle "{shown(handle)}" is not a valid receipt handle.'
        raise SqsError(INVALID_RECEIPT, text) from None


def _visibility(asked: ChangeVisibilityRequest | VisibilityEntry) -> tuple[Receipt, int]:
    if asked.visibility_timeout is None:
        raise missing("VisibilityTimeout")
    seconds = in_range("VisibilityTimeout", asked.visibility_timeout, 0, limits.SQS_VISIBILITY_SECONDS_MAX, 0)
    return _receipt(asked.receipt_handle), seconds


def _expired(receipt: Receipt) -> SqsError:
    return invalid("ReceiptHandle", receipt, _EXPIRED)


def _gone(receipt: Receipt) -> SqsError:
    return invalid("ReceiptHandle", receipt, _GONE)
