"""POST /receive and its alias /dequeue: lease messages, or peek at the next one."""

from hashlib import md5

import msgspec
from msgspec import UNSET

from forq_trio.broker.broker import Broker
from forq_trio.http.long_poll import peek_messages, receive_messages, undelivery
from forq_trio.http.message import Request, Response, encode_json, nothing_done
from forq_trio.http.sasquatch_api import bodies
from forq_trio.http.sasquatch_api.bodies import SasquatchBodyReader, in_range, milliseconds, required
from forq_trio.http.sasquatch_api.errors import VALIDATION_ERROR, SasquatchError
from forq_trio.http.sasquatch_api.options import SasquatchOptions
from forq_trio.model import limits
from forq_trio.model.access.types import Principal, Scope
from forq_trio.model.commands import RedrivePolicy
from forq_trio.model.messages.types import Delivery, MessageInfo, check_queue_name


class ReceiveOptions(msgspec.Struct, frozen=True):
    """A receive, checked and with defaults filled in. lease_ms: None for the queue's own."""

    queue: str
    max_messages: int
    wait_ms: int
    lease_ms: int | None
    shuffle: bool
    redrive_policy: RedrivePolicy


class ReceiveEndpoints:
    """The endpoints for consumers."""

    def __init__(self, broker: Broker, options: SasquatchOptions) -> None:
        self._broker = broker
        self._options = options
        self._read = SasquatchBodyReader(bodies.SasquatchReceive, options.request_bytes_max)

    async def receive(self, request: Request) -> Response:
        """The next messages, waiting for the first one; none after the wait."""
        asked = self._read(request)
        wanted = self._wanted(asked)
        if asked.peek:
            return await self._peek(request, wanted)
        _check_consumer(request.principal, wanted.queue, asked.dead_letter_queue_name)
        found = await receive_messages(
            self._broker,
            request,
            wanted.queue,
            max_messages=wanted.max_messages,
            wait_ms=wanted.wait_ms,
            lease_ms=wanted.lease_ms,
            shuffle=wanted.shuffle,
            redrive_policy=wanted.redrive_policy,
        )
        messages = [_view(delivery, delivery.receipt) for delivery in found]
        undeliver = undelivery(self._broker, wanted.queue, found) if found else None
        return Response(200, encode_json(bodies.SasquatchMessages(messages)), on_unsent=undeliver)

    async def _peek(self, request: Request, wanted: ReceiveOptions) -> Response:
        """The next message, or a random one, without claiming it."""
        request.principal.check(Scope.BROWSE, wanted.queue)
        found = await peek_messages(
            self._broker, request, wanted.queue, limit=1, wait_ms=wanted.wait_ms, shuffle=wanted.shuffle
        )
        messages = [_view(info) for info in found]
        return Response(200, encode_json(bodies.SasquatchMessages(messages)), on_unsent=nothing_done)

    def _wanted(self, asked: bodies.SasquatchReceive) -> ReceiveOptions:
        """A receive with its defaults: those of its queue's settings, else those of the dialect.

        A bound on receives has no default here: each message has had its own bound since its send.
        """
        options = self._options
        queue = check_queue_name(required("queue_name", asked.queue_name))
        own = self._broker.known.settings_of(queue)
        lease_ms = milliseconds(
            "visibility_timeout",
            asked.visibility_timeout,
            0,
            limits.SASQUATCH_SECONDS_MAX,
            None if own.lease_ms is not None else options.default_visibility_timeout,
        )
        wait_seconds = in_range(
            "wait_time_seconds",
            asked.wait_time_seconds,
            options.default_wait_time_seconds,
            0,
            limits.SASQUATCH_WAIT_SECONDS_MAX,
        )
        max_messages = in_range(
            "max_number_of_messages", asked.max_number_of_messages, 1, 1, limits.SASQUATCH_BATCH_MAX
        )
        in_range("max_receives", asked.max_receives, 1, 1, limits.SASQUATCH_RECEIVES_MAX)
        return ReceiveOptions(
            queue,
            max_messages,
            wait_seconds * limits.SECOND_MS,
            lease_ms,
            bool(asked.shuffle),
            RedrivePolicy(asked.max_receives, _dead_letter_queue(queue, asked), options.max_queue_length),
        )


def _dead_letter_queue(queue: str, asked: bodies.SasquatchReceive) -> str:
    """The dead-letter queue of the request, "" for none: an empty name is like an absent one."""
    name = asked.dead_letter_queue_name
    if not name:
        return ""
    if asked.peek:
        raise SasquatchError(VALIDATION_ERROR, "peek cannot be combined with dead_letter_queue_name")
    if check_queue_name(name) == queue:
        raise SasquatchError(VALIDATION_ERROR, "dead_letter_queue_name must differ from queue_name")
    return name


def _check_consumer(principal: Principal, queue: str, dead_letter_queue: str | None) -> None:
    """Raise Forbidden unless the client may consume from the queue and from the one for its poison messages."""
    principal.check(Scope.CONSUME, queue)
    if dead_letter_queue:
        principal.check(Scope.CONSUME, dead_letter_queue)


def _view(message: Delivery | MessageInfo, receipt: str | None = None) -> bodies.SasquatchMessage:
    return bodies.SasquatchMessage(
        message_id=message.id,
        receipt_handle=UNSET if receipt is None else receipt,
        message_body=message.content,
        md5_of_message_body=md5(message.content.encode(), usedforsecurity=False).hexdigest(),
        priority=message.priority,
        approximate_receive_count=message.attempts,
        approximate_first_receive_timestamp=(message.first_received_at or 0) // limits.SECOND_MS,
        sent_timestamp=message.received_at // limits.SECOND_MS,
        sequence_number=message.sequence,
        message_attributes=message.attributes or UNSET,
    )
