"""DeleteMessage and ChangeMessageVisibility, alone and in batches.

In a standard queue the receipt of any receive will do, as on AWS; in a FIFO queue only the latest one, while it lasts.
In a queue that is bound to a table it has to be the latest one, too.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from forq_trio.broker.broker import Broker
from forq_trio.http.sqs_api.batches import EntryT, check_entries, failed
from forq_trio.http.sqs_api.caller import SqsCaller
from forq_trio.http.sqs_api.checks import in_range
from forq_trio.http.sqs_api.errors import INVALID_RECEIPT, NOT_IN_FLIGHT, SqsError, invalid, missing, shown
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
from forq_trio.in_place import require_task
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
        _raise_first(await self._delete(queue, [self._receipt(queue, asked.receipt_handle)]))
        return Nothing()

    async def delete_batch(self, caller: SqsCaller, asked: DeleteMessageBatchRequest) -> DoneBatchAnswer:
        queue = caller.queue(self._broker, asked.queue_url, Scope.CONSUME)
        entries = check_entries(asked.entries, "DeleteMessageBatch")
        return await _each(
            entries,
            lambda entry: self._receipt(queue, entry.receipt_handle),
            lambda known: self._delete(queue, known),
        )

    async def change_visibility(self, caller: SqsCaller, asked: ChangeVisibilityRequest) -> Nothing:
        queue = caller.queue(self._broker, asked.queue_url, Scope.CONSUME)
        _raise_first(await self._extend(queue, [self._visibility(queue, asked)]))
        return Nothing()

    async def change_visibility_batch(
        self, caller: SqsCaller, asked: ChangeVisibilityBatchRequest
    ) -> DoneBatchAnswer:
        queue = caller.queue(self._broker, asked.queue_url, Scope.CONSUME)
        entries = check_entries(asked.entries, "ChangeMessageVisibilityBatch")
        return await _each(
            entries, lambda entry: self._visibility(queue, entry), lambda known: self._extend(queue, known)
        )

    async def _delete(self, queue: SqsQueue, receipts: Sequence[Receipt]) -> list[SqsError | None]:
        """Delete messages; what is deleted already counts as deleted. Where only the latest will do, one may expire."""
        done = await self._broker.ack_claims(queue.house_name, receipts, _claims(queue))
        if all(done) or not self._needs_latest(queue):
            return [None] * len(receipts)
        there = await self._present(queue, receipts, done)
        return [
            _expired(receipt) if present else None for receipt, present in zip(receipts, there, strict=True)
        ]

    async def _extend(self, queue: SqsQueue, wanted: Sequence[tuple[Receipt, int]]) -> list[SqsError | None]:
        """Have messages become visible again in so many seconds."""
        if len(wanted) > 1:
            require_task()  # begun again, it would find those that it has made visible no longer in flight
        receipts = [receipt for receipt, _ in wanted]
        ends: list[int | None] = [None] * len(wanted)
        for seconds in {seconds for _, seconds in wanted}:
            places = [place for place, (_, each) in enumerate(wanted) if each == seconds]
            found = await self._broker.extend_claims(
                queue.house_name,
                [receipts[place] for place in places],
                seconds * limits.SECOND_MS,
                _claims(queue),
            )
            for place, end in zip(places, found, strict=True):
                ends[place] = end
        if None not in ends:
            return [None] * len(wanted)
        needs_latest = self._needs_latest(queue)
        there = [False] * len(wanted) if needs_latest else await self._present(queue, receipts, ends)

        def refused(receipt: Receipt, present: bool) -> SqsError:
            if needs_latest:
                return _expired(receipt)
            return _not_in_flight() if present else _gone(receipt)

        return [
            refused(receipt, present) if end is None else None
            for receipt, end, present in zip(receipts, ends, there, strict=True)
        ]

    def _needs_latest(self, queue: SqsQueue) -> bool:
        """Whether only the receipt of the latest receive will do."""
        return queue.is_fifo or self._broker.known.settings_of(queue.house_name).table is not None

    async def _present(
        self, queue: SqsQueue, receipts: Sequence[Receipt], done: Sequence[object]
    ) -> list[bool]:
        """Whether the message of each receipt with which nothing was done is in the queue; False for the others."""
        refused = [receipt for receipt, each in zip(receipts, done, strict=True) if not each]
        there = iter(await self._broker.present(queue.house_name, refused))
        return [not each and next(there) for each in done]

    def _receipt(self, queue: SqsQueue, handle: str | None) -> Receipt:
        if not handle:
            raise missing("ReceiptHandle")
        try:
            return self._broker.read_receipt(queue.house_name, handle)
        except MalformedReceipt:
            text = f'The input receipt handle "{shown(handle)}" is not a valid receipt handle.'
            raise SqsError(INVALID_RECEIPT, text) from None

    def _visibility(
        self, queue: SqsQueue, asked: ChangeVisibilityRequest | VisibilityEntry
    ) -> tuple[Receipt, int]:
        seconds = asked.visibility_timeout
        if seconds is None:
            raise missing("VisibilityTimeout")
        in_range("VisibilityTimeout", seconds, 0, limits.SQS_VISIBILITY_SECONDS_MAX, 0)
        return self._receipt(queue, asked.receipt_handle), seconds


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


def _expired(receipt: Receipt) -> SqsError:
    return invalid("ReceiptHandle", receipt, _EXPIRED)


def _gone(receipt: Receipt) -> SqsError:
    return invalid("ReceiptHandle", receipt, _GONE)


def _not_in_flight() -> SqsError:
    return SqsError(NOT_IN_FLIGHT, "The specified message isn't in flight.")
