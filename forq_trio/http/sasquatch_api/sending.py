"""POST /send, /send_batch and /enqueue: each message is validated alone, all valid ones are stored in one commit."""

import re
from collections.abc import Sequence
from hashlib import md5
from urllib.parse import parse_qs

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.sasquatch_api import bodies
from forq_trio.http.sasquatch_api.bodies import (
    SasquatchBodyReader,
    check_body_size,
    count_in_batch,
    in_range,
    milliseconds,
    required,
)
from forq_trio.http.sasquatch_api.errors import (
    DUPLICATE_MESSAGE,
    INVALID_REQUEST,
    MESSAGE_SIZE_EXCEEDED,
    QUEUE_FULL,
    VALIDATION_ERROR,
    SasquatchError,
    explain,
)
from forq_trio.http.sasquatch_api.options import SasquatchOptions
from forq_trio.model import limits
from forq_trio.model.access.types import Principal, Scope
from forq_trio.model.checks import check_attributes, encode
from forq_trio.model.errors import CallerError, QueueFull
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import NewMessageWithDefaultBound, Produced

# Stricter than for receives: no queue is made through this dialect whose name Sasquatch would refuse.
_QUEUE_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{limits.QUEUE_NAME_LENGTH_MAX}}}(-dlq)?")
_DEDUPLICATION_ID = re.compile(rf"[A-Za-z0-9]{{1,{limits.DEDUPLICATION_ID_LENGTH_MAX}}}")
_PRIORITY = re.compile(r"[+-]?[0-9]{1,18}")


class SendEndpoints:
    """The endpoints for producers."""

    def __init__(self, broker: Broker, options: SasquatchOptions) -> None:
        self._broker = broker
        self._options = options
        self._read_one = SasquatchBodyReader(bodies.SendRequest, options.send_bytes_max)
        self._read_batch = SasquatchBodyReader(bodies.SendBatchRequest, options.send_batch_bytes_max)

    async def send(self, request: Request) -> Response:
        """Store one message."""
        return await self._send_one(request.principal, self._read_one(request))

    async def enqueue(self, request: Request) -> Response:
        """Sasquatch's legacy send: queue_name and priority in the query, the body is the message."""
        check_body_size(request, self._options.message_bytes_max)
        query = parse_qs(request.query, keep_blank_values=True)
        try:
            text = request.body.decode()
        except UnicodeDecodeError:
            raise SasquatchError(INVALID_REQUEST, "the message is not UTF-8") from None
        sent = bodies.SendRequest(query.get("queue_name", [None])[-1], text, _priority(query.get("priority")))
        return await self._send_one(request.principal, sent)

    async def send_batch(self, request: Request) -> Response:
        """Store the valid ones of up to 10 messages, and answer each of the others with its error."""
        request.principal.check_somewhere(Scope.PRODUCE)
        raw = count_in_batch("messages", self._read_batch(request).messages)
        accepted: list[tuple[int, tuple[str, NewMessage]]] = []
        failed: dict[int, SasquatchError] = {}
        for index, each in enumerate(raw):
            try:
                accepted.append((index, self._message(request.principal, self._read_one.part(each))))
            except (SasquatchError, CallerError) as error:
                failed[index] = explain(error)
        outcomes = await self._produce([message for _, message in accepted])
        successful = []
        for (index, (_, message)), outcome in zip(accepted, outcomes, strict=True):
            if isinstance(outcome, Produced):
                sent = _sent(message, outcome)
                successful.append(bodies.SentAt(index, *msgspec.structs.astuple(sent)))
            else:
                failed[index] = outcome
        failures = [bodies.FailedAt(index, error.view) for index, error in sorted(failed.items())]
        return json_response(bodies.SentBatch(successful, failures))

    async def _send_one(self, principal: Principal, sent: bodies.SendRequest) -> Response:
        queue, message = self._message(principal, sent)
        (outcome,) = await self._produce([(queue, message)])
        if not isinstance(outcome, Produced):
            raise outcome
        return json_response(_sent(message, outcome))

    async def _produce(self, messages: Sequence[tuple[str, NewMessage]]) -> list[Produced | SasquatchError]:
        """Store these messages; for one that was not stored, the error for its sender."""
        outcomes = await self._broker.produce_across(
            messages,
            messages_max=self._options.max_queue_length,
            content_bytes_max=self._options.message_bytes_max,
        )
        return [
            self._explained(queue, message, outcome)
            for (queue, message), outcome in zip(messages, outcomes, strict=True)
        ]

    def _explained(
        self, queue: str, message: NewMessage, outcome: Produced | Exception
    ) -> Produced | SasquatchError:
        if isinstance(outcome, QueueFull):
            return SasquatchError(QUEUE_FULL, f"queue {queue} is full")
        if isinstance(outcome, Exception):
            return explain(outcome)
        if outcome.duplicate:
            text = f"a message with deduplication id {message.deduplication_id} was sent to queue {queue} already"
            return SasquatchError(DUPLICATE_MESSAGE, text)
        return outcome

    def _message(self, principal: Principal, sent: bodies.SendRequest) -> tuple[str, NewMessage]:
        """The queue and the message; raises SasquatchError, CallerError or Forbidden.

        The defaults of a message are those of its queue's settings, else those of the dialect.
        """
        options = self._options
        queue = _queue_name(required("queue_name", sent.queue_name))
        content = required("message_body", sent.message_body)
        if len(encode("message_body", content, "message_body")) > options.message_bytes_max:
            text = f"message_body is longer than {options.max_message_size_kb} KB"
            raise SasquatchError(MESSAGE_SIZE_EXCEEDED, text)
        principal.check(Scope.PRODUCE, queue)
        attributes = sent.message_attributes or None
        if attributes is not None:
            check_attributes(attributes)
        own = self._broker.known.settings_of(queue)
        return queue, NewMessageWithDefaultBound(
            content,
            priority=in_range(
                "priority", sent.priority, options.default_priority, limits.PRIORITY_MIN, limits.PRIORITY_MAX
            ),
            deduplication_id=_deduplication_id(sent.message_deduplication_id),
            deduplication_window_ms=milliseconds(
                "message_deduplication_time_period",
                sent.message_deduplication_time_period,
                1,
                limits.SASQUATCH_SECONDS_MAX,
                None if own.deduplication_window_ms else options.default_dedup_time_period,
            ),
            delay_ms=milliseconds("delay_seconds", sent.delay_seconds, 0, limits.SASQUATCH_SECONDS_MAX, None),
            ttl_ms=milliseconds(
                "message_retention_period",
                sent.message_retention_period,
                limits.SASQUATCH_RETENTION_SECONDS_MIN,
                limits.SASQUATCH_RETENTION_SECONDS_MAX,
                None if own.ttl_ms else options.default_retention_period,
            ),
            attributes=attributes,
            # After poison_max_receives the message is deleted, whatever its consumers ask for.
            max_attempts=options.poison_max_receives if own.max_attempts is None else None,
            default_max_receives=options.default_max_receives if own.max_attempts is None else None,
            dead_letter_queue="" if own.dead_letter_queue is None else None,
        )


def _queue_name(name: str) -> str:
    if _QUEUE_NAME.fullmatch(name) is None:
        text = (
            f"queue_name must be 1 to {limits.QUEUE_NAME_LENGTH_MAX} letters, digits, hyphens and underscores"
        )
        raise SasquatchError(VALIDATION_ERROR, text)
    return name


def _deduplication_id(text: str | None) -> str | None:
    if text is not None and _DEDUPLICATION_ID.fullmatch(text) is None:
        problem = (
            f"message_deduplication_id must be 1 to {limits.DEDUPLICATION_ID_LENGTH_MAX} letters and digits"
        )
        raise SasquatchError(VALIDATION_ERROR, problem)
    return text


def _priority(values: list[str] | None) -> int | None:
    if values is None:
        return None
    if _PRIORITY.fullmatch(values[-1]) is None:
        raise SasquatchError(VALIDATION_ERROR, "priority must be a whole number")
    return int(values[-1])


def _sent(message: NewMessage, produced: Produced) -> bodies.Sent:
    digest = md5(message.content.encode(), usedforsecurity=False).hexdigest()
    return bodies.Sent(produced.id, digest, produced.sequence)
