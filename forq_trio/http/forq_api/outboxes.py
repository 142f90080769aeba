"""Outboxes. Our additions to Forq's API.

The gate checks that the token may send somewhere; the broker refuses each message whose queue it does not cover.
"""

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute, calling, with_key
from forq_trio.http.forq_api.reading import query_limit, query_number
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model import errors, limits
from forq_trio.wire.endpoints import outboxes as api
from forq_trio.wire.outboxes import RelayRequest, SetAsidePage

_read_relay = BodyReader(RelayRequest)


class OutboxEndpoints:
    """A relay is one commit."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def relay(self, request: Request, outbox: str) -> Response:
        """Store the next messages of an outbox."""
        if len(request.body) > limits.PRODUCE_BATCH_BYTES_MAX:
            most = limits.PRODUCE_BATCH_BYTES_MAX
            raise Refused(errors.ContentTooLarge, f"a page has at most {most} bytes", status=413)
        wanted = _read_relay(request.body)
        key = request.principal.key
        return json_response(await self._broker.relay_outbox(outbox, wanted.after, wanted.messages, key=key))

    async def set_aside(self, request: Request) -> Response:
        """A page of the messages that were set aside."""
        after = query_number(request.query, "after", 0, 0, limits.SEQUENCE_MAX)
        limit = query_limit(request.query, limits.SET_ASIDE_PAGE_MAX, limits.SET_ASIDE_PAGE_DEFAULT)
        return json_response(SetAsidePage(await self._broker.set_aside(after=after, limit=limit)))


def outbox_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of outboxes. route: makes one of an endpoint and what responds."""
    return [
        route(api.RELAY_OUTBOX, OutboxEndpoints(broker).relay),
        calling(route, api.SHOW_OUTBOX, broker.outbox_position, about_caller=with_key),
        route(api.LIST_SET_ASIDE, OutboxEndpoints(broker).set_aside),
        calling(route, api.PUT_BACK, broker.put_back, wraps=True),
        calling(route, api.DELETE_SET_ASIDE, broker.delete_set_aside, wraps=True),
    ]
