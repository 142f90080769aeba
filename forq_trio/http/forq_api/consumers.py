"""Consumers of pipelines. Our additions to Forq's API."""

import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.calls import MakeRoute, calling, with_key
from forq_trio.http.forq_api.queries import QueryReader
from forq_trio.http.message import NO_CONTENT, Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model.access.types import Scope
from forq_trio.model.consumers import endpoints as api
from forq_trio.model.consumers.bodies import ConsumerList, ConsumersQuery

_NOT_YET = Response(202, b"")
_read_page = QueryReader(ConsumersQuery)


class ConsumerEndpoints:
    """The consumers of one queue, and of all."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def list_all(self, request: Request) -> Response:
        """A page of the consumers of all queues that the key covers, by queue and name."""
        wanted = _read_page(request.query)
        await trio.lowlevel.checkpoint()
        page, last = self._broker.leases.page(
            wanted.after, wanted.limit, lambda queue: request.principal.may(Scope.BROWSE, queue)
        )
        return json_response(ConsumerList(page, last))

    async def delete(self, request: Request, queue: str, name: str) -> Response:
        """Release the consumer's lease and delete it: 204, or 202 if that takes more than a second."""
        return NO_CONTENT if await self._broker.leases.delete(queue, name) else _NOT_YET


def consumer_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of consumers. route: makes one of an endpoint and its function."""
    consumers = ConsumerEndpoints(broker)
    return [
        route(api.LIST_ALL_CONSUMERS, consumers.list_all),
        calling(route, api.LIST_CONSUMERS, broker.consumers, wraps=True),
        calling(route, api.OPEN_CONSUMER, broker.open_consumer, about_caller=with_key),
        calling(route, api.SHOW_CONSUMER, broker.consumer),
        route(api.DELETE_CONSUMER, consumers.delete),
        calling(route, api.LEASE_MESSAGES, broker.leases.lease),
        calling(route, api.READ_LEASE, broker.lines.lease, lines=True),
        calling(route, api.ACKNOWLEDGE_LEASE, broker.leases.acknowledge),
        calling(route, api.RELEASE_CONSUMER, broker.leases.release),
    ]
