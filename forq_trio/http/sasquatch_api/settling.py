"""POST /delete and /change_visibility: by receipt handles alone, for messages of any queues."""

from collections.abc import Sequence

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.message import Request, Response
from forq_trio.http.sasquatch_api import bodies
from forq_trio.http.sasquatch_api.bodies import SasquatchBodyReader, count_in_batch, in_range, required
from forq_trio.http.sasquatch_api.errors import NOT_FOUND, SasquatchError
from forq_trio.http.sasquatch_api.options import SasquatchOptions
from forq_trio.model import limits
from forq_trio.model.access.types import ALL_QUEUES, Principal, Scope
from forq_trio.model.messages.types import Receipt

_DONE = msgspec.json.encode(bodies.Done())


class SettleEndpoints:
    """The endpoints for messages that a consumer has received."""

    def __init__(self, broker: Broker, options: SasquatchOptions) -> None:
        self._broker = broker
        self._read = SasquatchBodyReader(bodies.HandlesRequest, options.request_bytes_max)

    async def delete(self, request: Request) -> Response:
        """Remove messages; NotFound if none of the handles is current."""
        handles = await self._handles(request, self._read(request))
        deleted = sum(result.ok for result in await self._broker.ack(None, handles))
        _check_matched(deleted)
        return Response(200, msgspec.json.encode(bodies.Deleted(deleted)))

    async def change_visibility(self, request: Request) -> Response:
        """Set leases to end `visibility_timeout` seconds from now, even those that have ended already."""
        asked = self._read(request)
        longest = limits.SASQUATCH_SECONDS_MAX
        seconds = required("visibility_timeout", asked.visibility_timeout)
        seconds = in_range("visibility_timeout", seconds, 0, -longest, longest)
        handles = await self._handles(request, asked)
        results = await self._broker.extend(None, handles, max(0, seconds) * limits.SECOND_MS)
        _check_matched(sum(result.ok for result in results))
        return Response(200, _DONE)

    async def _handles(self, request: Request, asked: bodies.HandlesRequest) -> list[str]:
        """The handles, each once.

        Raises MalformedReceipt, and Forbidden if the client may not consume from the queue of one of them.
        """
        handles = list(dict.fromkeys(count_in_batch("receipt_handles", asked.receipt_handles)))
        for handle in handles:
            Receipt.parse(handle)
        await self._check_consumer(request.principal, handles)
        return handles

    async def _check_consumer(self, principal: Principal, handles: Sequence[str]) -> None:
        """Raise Forbidden for a message of a queue that the token does not cover.

        Only for a token of some queues are the messages' queues read.
        """
        principal.check_somewhere(Scope.CONSUME)
        if principal.token is None or principal.token.queues == ALL_QUEUES:
            return
        for queue in await self._broker.lists.queues_of(handles):
            if queue is not None:
                principal.check(Scope.CONSUME, queue)


def _check_matched(count: int) -> None:
    if not count:
        raise SasquatchError(NOT_FOUND, "no messages matched the receipt handles")
