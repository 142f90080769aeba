"""Consumers of pipelines. Our additions to Forq's API."""

import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.calls import MakeRoute, calling, with_key
from forq_trio.http.forq_api.ndjson import lines_answer
from forq_trio.http.forq_api.reading import number_of_path, query_number, query_page
from forq_trio.http.message import NO_CONTENT, Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model import limits
from forq_trio.model.access import Scope
from forq_trio.wire.consumers import ConsumerList
from forq_trio.wire.endpoints import consumers as api

_NOT_YET = Response(202, b"")
_NOT_SAID = -1


class ConsumerEndpoints:
    """The consumers of one queue, and of all."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def list_all(self, request: Request) -> Response:
        """A page of the consumers of all queues that the key covers, by queue and name."""
        after, limit = query_page(request.query)
        await trio.lowlevel.checkpoint()
        page, last = self._broker.leases.page(
            after, limit, lambda queue: request.principal.may(Scope.BROWSE, queue)
        )
        return json_response(ConsumerList(page, last))

    async def delete(self, request: Request, queue: str, name: str) -> Response:
        """204: its lease is given back, and it is deleted; 202 if that takes more than a second."""
        return NO_CONTENT if await self._broker.leases.delete(queue, name) else _NOT_YET

    async def read(self, request: Request, queue: str, name: str, number: str) -> Response:
        """Lines of messages; the header X-Forq-Next has the page to go on with."""
        page = query_number(request.query, "page", 0, 0, limits.SEQUENCE_MAX)
        pages = query_number(request.query, "pages", 1, 1, limits.CONSUMER_READ_PAGES_MAX)
        made_at = query_number(request.query, "madeAt", _NOT_SAID, 0, limits.SEQUENCE_MAX)
        wanted = None if made_at == _NOT_SAID else made_at
        body, after = await self._broker.lines.lease(queue, name, number_of_path(number), page, pages, wanted)
        return lines_answer(body, after)


def consumer_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of consumers. route: makes one of an endpoint and what responds."""
    consumers = ConsumerEndpoints(broker)
    return [
        route(api.LIST_ALL_CONSUMERS, consumers.list_all),
        calling(route, api.LIST_CONSUMERS, broker.consumers, wraps=True),
        calling(route, api.OPEN_CONSUMER, broker.open_consumer, about_caller=with_key),
        calling(route, api.SHOW_CONSUMER, broker.consumer),
        route(api.DELETE_CONSUMER, consumers.delete),
        calling(route, api.LEASE_MESSAGES, broker.leases.lease),
        route(api.READ_LEASE, consumers.read),
        calling(route, api.ACKNOWLEDGE_LEASE, broker.leases.acknowledge),
        calling(route, api.RELEASE_CONSUMER, broker.leases.release),
    ]
