"""Forq's own four endpoints (contract F1-F6): send one message, wait for one, ack it, nack it."""

from functools import partial

import msgspec

from forq_trio import limits
from forq_trio.broker import Broker
from forq_trio.http.codes import PAYLOAD_TOO_LARGE, RECEIPT_MISSING, Refused, refused
from forq_trio.http.forq_api.bodies import BodyReader, NewMessage, ReceivedMessage
from forq_trio.http.forq_api.reading import wait_for_messages
from forq_trio.http.message import NO_CONTENT, Request, Response
from forq_trio.model import NewMessage as QueuedMessage

RECEIPT_HEADER = b"x-forq-receipt"

_read_message = BodyReader(NewMessage)
_encode = msgspec.json.Encoder().encode


class MessageEndpoints:
    """require_receipt: refuse an ack or nack without X-Forq-Receipt (FORQ_REQUIRE_RECEIPT)."""

    def __init__(self, broker: Broker, *, require_receipt: bool) -> None:
        self._broker = broker
        self._require_receipt = require_receipt

    async def send(self, request: Request, queue: str) -> Response:
        """204 once the message is durable."""
        if len(request.body) > limits.SEND_BODY_BYTES_MAX:
            raise Refused(PAYLOAD_TOO_LARGE)
        message = _read_message(request.body)
        await self._broker.produce_message(queue, QueuedMessage(message.content, message.process_after))
        return NO_CONTENT

    async def receive(self, request: Request, queue: str) -> Response:
        """200 with a message as soon as there is one, 204 after 30 s without."""
        deliveries = await self._broker.receive(queue) or await wait_for_messages(
            self._broker,
            request,
            queue,
            max_messages=1,
            wait_ms=limits.WAIT_MS_MAX,
            lease_ms=limits.LEASE_MS_DEFAULT,
        )
        if not deliveries:
            return NO_CONTENT
        delivery = deliveries[0]
        body = _encode(ReceivedMessage(delivery.id, delivery.content, delivery.receipt))
        return Response(200, body, on_unsent=partial(self._broker.undeliver, queue, deliveries))

    async def ack(self, request: Request, queue: str, message_id: str) -> Response:
        """204: the message is gone; fenced when a receipt comes along."""
        await self._broker.ack_message(queue, message_id, self._receipt(request))
        return NO_CONTENT

    async def nack(self, request: Request, queue: str, message_id: str) -> Response:
        """204: the message comes back after its back-off, or failed; fenced when a receipt comes along."""
        await self._broker.nack_message(queue, message_id, self._receipt(request))
        return NO_CONTENT

    def _receipt(self, request: Request) -> str | None:
        receipt = request.headers.get(RECEIPT_HEADER)
        if receipt is not None:
            return receipt.decode("latin-1")
        if self._require_receipt:
            raise refused(RECEIPT_MISSING)
        return None
