"""SendMessage and SendMessageBatch."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from msgspec.structs import asdict

from forq_trio.broker.broker import Broker
from forq_trio.http.sqs_api.batches import check_entries, failed
from forq_trio.http.sqs_api.caller import SqsCaller
from forq_trio.http.sqs_api.details import attributes_of_queue
from forq_trio.http.sqs_api.digests import md5_of_attributes, md5_of_text
from forq_trio.http.sqs_api.errors import (
    BATCH_TOO_LONG,
    INVALID_PARAMETER,
    SqsError,
    invalid,
    missing,
    not_of_this_type,
)
from forq_trio.http.sqs_api.explain import explain
from forq_trio.http.sqs_api.messages import (
    bytes_of,
    check_attributes_of_message,
    check_body,
    check_id,
    stored_attributes,
    trace_header,
)
from forq_trio.http.sqs_api.names import SqsQueue
from forq_trio.http.sqs_api.senders import with_proof
from forq_trio.http.sqs_api.shapes import (
    NewSqsMessage,
    SendEntry,
    SendMessageBatchRequest,
    SendMessageRequest,
    SentAnswer,
    SentBatchAnswer,
    SentEntry,
)
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import ForqError
from forq_trio.model.holders import token_of_task
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced
from forq_trio.model.sqs.attributes import Extra

_SEQUENCE_DIGITS = 20


class SqsSending:
    """The operations for producers."""

    def __init__(self, broker: Broker, sender_key: bytes | None) -> None:
        self._broker = broker
        self._sender_key = sender_key

    async def send_message(self, caller: SqsCaller, asked: SendMessageRequest) -> SentAnswer:
        queue = caller.queue(self._broker, asked.queue_url, Scope.PRODUCE)
        message = self._message(queue, asked)
        stored = await self._broker.store_message(queue.house_name, message, known_only=True)
        return _sent(queue, asked, stored)

    async def send_batch(self, caller: SqsCaller, asked: SendMessageBatchRequest) -> SentBatchAnswer:
        queue = caller.queue(self._broker, asked.queue_url, Scope.PRODUCE)
        entries = check_entries(asked.entries, "SendMessageBatch")
        _check_batch(
            queue, [entry for _, entry in entries], attributes_of_queue(self._broker, queue.house_name)
        )
        accepted: list[tuple[str, SendEntry, NewMessage]] = []
        failures = []
        for entry_id, entry in entries:
            try:
                accepted.append((entry_id, entry, self._message(queue, entry)))
            except SqsError as error:
                failures.append(failed(entry_id, error))
        messages = [message for _, _, message in accepted]
        outcomes = await self._broker.store_messages(queue.house_name, messages)
        successful = []
        for (entry_id, entry, _), outcome in zip(accepted, outcomes, strict=True):
            try:
                successful.append(SentEntry(**asdict(_sent(queue, entry, outcome)), id=entry_id))
            except SqsError as error:
                failures.append(failed(entry_id, error))
        return SentBatchAnswer(successful, failures)

    def _message(self, queue: SqsQueue, asked: NewSqsMessage) -> NewMessage:
        """A message to store; raises SqsError."""
        own = attributes_of_queue(self._broker, queue.house_name)
        _check_size(asked, own)
        body = check_body(asked.message_body)
        given = asked.message_attributes or {}
        check_attributes_of_message(given)
        group = None if asked.message_group_id is None else check_id("MessageGroupId", asked.message_group_id)
        dedup = _deduplication_id(queue, asked, body, own)
        extra = Extra(
            deduplication_id=dedup,
            trace_header=trace_header(asked.message_system_attributes or {}),
            sender=token_of_task(),
        )
        attributes = stored_attributes(given, extra)
        if attributes is not None and extra.sender is not None and self._sender_key is not None:
            attributes = with_proof(body, attributes, self._sender_key)
        scoped = own.get("DeduplicationScope") == "messageGroup"
        return NewMessage(
            body,
            delay_ms=_delay_ms(queue, asked.delay_seconds),
            attributes=attributes,
            deduplication_id=f"{group} {dedup}" if scoped and dedup is not None else dedup,
            deduplication_window_ms=None if dedup is None else limits.DEDUPLICATION_WINDOW_MS_DEFAULT,
            group=group,
        )


def _check_size(message: NewSqsMessage, own: Mapping[str, str]) -> None:
    """Raise SqsError for a message that is too long. Called first: to check what is in a long one takes longer."""
    bytes_max = int(own.get("MaximumMessageSize", limits.SQS_MESSAGE_BYTES_MAX))
    if bytes_of(message) > bytes_max:
        raise SqsError(
            INVALID_PARAMETER,
            f"One or more parameters are invalid. Reason: Message must be shorter than {bytes_max} bytes.",
        )


def _check_batch(queue: SqsQueue, entries: Sequence[NewSqsMessage], own: Mapping[str, str]) -> None:
    """Raise SqsError for a batch that is refused whole, because of its size or of what FIFO queues need."""
    total, most = sum(map(bytes_of, entries)), limits.SQS_MESSAGE_BYTES_MAX
    if total > most:
        text = f"Batch requests cannot be longer than {most} bytes. You have sent {total} bytes."
        raise SqsError(BATCH_TOO_LONG, text)
    if not queue.is_fifo:
        return
    if any(entry.message_group_id is None for entry in entries):
        raise SqsError(INVALID_PARAMETER, missing("MessageGroupId").message)
    by_content = own.get("ContentBasedDeduplication") == "true"
    if not by_content and not all(entry.message_deduplication_id for entry in entries):
        raise _needs_deduplication()


def _needs_deduplication() -> SqsError:
    return SqsError(
        INVALID_PARAMETER,
        "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly",
    )


def _delay_ms(queue: SqsQueue, seconds: int | None) -> int | None:
    if seconds is None:
        return None
    if queue.is_fifo and seconds:
        raise not_of_this_type("DelaySeconds", seconds)
    if not 0 <= seconds <= limits.SQS_DELAY_SECONDS_MAX:
        reason = f"DelaySeconds must be >= 0 and <= {limits.SQS_DELAY_SECONDS_MAX}."
        raise invalid("DelaySeconds", seconds, reason)
    return None if queue.is_fifo else seconds * limits.SECOND_MS


def _deduplication_id(
    queue: SqsQueue, asked: NewSqsMessage, body: str, attributes: Mapping[str, str]
) -> str | None:
    """The id by which a duplicate is known: the sender's, or the hash of the body; None in a standard queue."""
    given = asked.message_deduplication_id
    if not queue.is_fifo:
        if given is not None:
            raise not_of_this_type("MessageDeduplicationId", given)
        return None
    if asked.message_group_id is None:
        raise missing("MessageGroupId")
    if given is not None:
        return check_id("MessageDeduplicationId", given)
    if attributes.get("ContentBasedDeduplication") != "true":
        raise _needs_deduplication()
    return sha256(body.encode()).hexdigest()


def _sent(queue: SqsQueue, asked: NewSqsMessage, outcome: Produced | ForqError) -> SentAnswer:
    if not isinstance(outcome, Produced):
        raise explain(outcome)
    attributes, system = asked.message_attributes, asked.message_system_attributes
    return SentAnswer(
        outcome.id,
        md5_of_text(asked.message_body or ""),
        md5_of_attributes(attributes) if attributes else None,
        md5_of_attributes(system) if system else None,
        sequence_text(outcome.sequence) if queue.is_fifo else None,
    )


def sequence_text(sequence: int) -> str:
    """A sequence number with so many digits that texts sort like numbers."""
    return f"{sequence:0{_SEQUENCE_DIGITS}d}"
