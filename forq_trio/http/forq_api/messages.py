"""Forq's own four endpoints (contract F1-F6): send one message, wait for one, ack it, nack it."""

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.queries import QueryReader
from forq_trio.http.forq_api.receiving import lease, peek
from forq_trio.http.forq_api.refusals import Refused, asks_for_more
from forq_trio.http.forq_api.sends import check_body, read_message
from forq_trio.http.long_poll import undelivery
from forq_trio.http.message import NO_CONTENT, Request, Response, encode_json
from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.error_answers import RECEIPT_HEADER
from forq_trio.model.messages.bodies import NextMessage, NextQuery, ReceivedMessage, ReceiveRequest
from forq_trio.model.messages.types import Delivery

_RECEIPT = RECEIPT_HEADER.lower().encode()
_read_next = QueryReader(NextQuery)


class MessageEndpoints:
    """require_receipt: refuse an ack or nack without X-Forq-Receipt (FORQ_REQUIRE_RECEIPT)."""

    def __init__(self, broker: Broker, *, require_receipt: bool) -> None:
        self._broker = broker
        self._require_receipt = require_receipt

    async def send(self, request: Request, queue: str) -> Response:
        """204 once the message is durable."""
        check_body(request.body)
        message = read_message(request.body)
        if message.dead_letter_queue:
            request.principal.check(Scope.PRODUCE, message.dead_letter_queue)
        await self._broker.produce_message(queue, message)
        return NO_CONTENT

    async def receive(self, request: Request, queue: str) -> Response:
        """200 with a message as soon as there is one, or 204 if none came within waitMs (30 s)."""
        wanted = _wanted(request.query) if request.query else _NEXT
        request.principal.check(Scope.BROWSE if wanted.peek else Scope.CONSUME, queue)
        if wanted.peek:
            seen = await peek(self._broker, request, queue, wanted)
            return Response(200, _body(request, seen[0])) if seen else NO_CONTENT
        deliveries = await lease(self._broker, request, queue, wanted)
        if not deliveries:
            return NO_CONTENT
        body = _body(request, deliveries[0])
        return Response(200, body, on_unsent=undelivery(self._broker, queue, deliveries))

    async def ack(self, request: Request, queue: str, message_id: str) -> Response:
        """Delete a message that was consumed: 204. With a receipt the ack is fenced."""
        await self._broker.ack_message(queue, message_id, self._receipt(request))
        return NO_CONTENT

    async def nack(self, request: Request, queue: str, message_id: str) -> Response:
        """Give a message back, which comes again after its back-off, or has failed: 204.

        With a receipt the nack is fenced.
        """
        await self._broker.nack_message(queue, message_id, self._receipt(request))
        return NO_CONTENT

    def _receipt(self, request: Request) -> str | None:
        receipt = request.headers.get(_RECEIPT)
        if receipt is not None:
            return receipt.decode("latin-1")
        if self._require_receipt:
            raise Refused(errors.ReceiptMissing, field=RECEIPT_HEADER)
        return None


def _body(request: Request, message: Delivery | ReceivedMessage) -> bytes:
    """The message with Forq's own members, or with all of them if the client asks for that."""
    if asks_for_more(request):
        return encode_json(message)
    return encode_json(NextMessage(message.id, message.content, message.receipt))


def _wanted(query: str) -> ReceiveRequest:
    """What the query of a receive of one message asks for."""
    wanted = _read_next(query)
    return ReceiveRequest(wait_ms=wanted.wait_ms, order=wanted.order, peek=wanted.peek)


_NEXT = _wanted("")
