"""Many messages in one request: send and receive. Our additions to Forq's API."""

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.reading import check_range
from forq_trio.http.forq_api.receiving import lease, peek
from forq_trio.http.forq_api.sends import read_messages, results_of, valid
from forq_trio.http.long_poll import undelivery
from forq_trio.http.message import Request, Response, encode_json, json_response, nothing_done
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.checks import check_producible
from forq_trio.model.messages.bodies import (
    LeasedMessages,
    ReceivedMessages,
    ReceiveRequest,
    SendResult,
    SendResults,
)
from forq_trio.model.messages.types import Produced

_read_receive = BodyReader(ReceiveRequest)


class BatchEndpoints:
    """A send answers 200 with a result per message; it is one commit."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def send(self, request: Request, queue: str) -> Response:
        """Store the valid messages of the batch together; each of the others is refused with its code."""
        check_producible(queue)
        entries = await read_messages(request)
        outcomes = await self._broker.produce_many(queue, valid(entries))
        return json_response(SendResults(results_of(entries, outcomes, stored, SendResult)))

    async def receive(self, request: Request, queue: str) -> Response:
        """The next messages, waiting for the first one; none after the wait."""
        wanted = _read_receive(request.body)
        request.principal.check(Scope.BROWSE if wanted.peek else Scope.CONSUME, queue)
        check_range("$.max", wanted.max, 1, limits.RECEIVE_BATCH_MAX)
        check_range("$.waitMs", wanted.wait_ms, 0, limits.WAIT_MS_MAX)
        if wanted.lease_ms is not None:
            check_range("$.leaseMs", wanted.lease_ms, 0, limits.LEASE_MS_MAX)
        if wanted.peek:
            seen = await peek(self._broker, request, queue, wanted)
            return Response(200, encode_json(ReceivedMessages(seen)), on_unsent=nothing_done)
        deliveries = await lease(self._broker, request, queue, wanted)
        body = encode_json(LeasedMessages(deliveries))
        if not deliveries:
            return Response(200, body)
        return Response(200, body, on_unsent=undelivery(self._broker, queue, deliveries))


def stored(message: Produced) -> SendResult:
    """The result of a message that was stored."""
    return SendResult(message.id, message.sequence, message.duplicate)
