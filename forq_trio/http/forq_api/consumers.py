"""Consumers of pipelines. Our additions to Forq's API."""

import msgspec
import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute, calling
from forq_trio.http.forq_api.ndjson import lines_answer
from forq_trio.http.forq_api.reading import number_of_path, query_number, query_page
from forq_trio.http.message import NO_CONTENT, Request, Response
from forq_trio.http.router import Route
from forq_trio.model import limits
from forq_trio.model.access import Scope
from forq_trio.wire.consumers import AcknowledgeLease, ConsumerList, LeaseRequest, OpenConsumer
from forq_trio.wire.endpoints import consumers as api

_read_open = BodyReader(OpenConsumer)
_read_lease = BodyReader(LeaseRequest)
_read_acknowledge = BodyReader(AcknowledgeLease)
_NOT_YET = Response(202, b"")
_encode = msgspec.json.Encoder().encode


class ConsumerEndpoints:
    """The consumers of one queue, and of all."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def list_all(self, request: Request) -> Response:
        """A page of the consumers of all queues that the key covers, by queue and name."""
        after, limit = query_page(request.query)
        await trio.lowlevel.checkpoint()
        page, last = self._broker.consumers_page(
            after, limit, lambda queue: request.principal.may(Scope.BROWSE, queue)
        )
        return Response(200, _encode(ConsumerList(page, last)))

    async def list(self, request: Request, queue: str) -> Response:
        """The consumers of a queue by name."""
        return Response(200, _encode(ConsumerList(await self._broker.consumers(queue))))

    async def open(self, request: Request, queue: str, name: str) -> Response:
        """The consumer, in its new generation."""
        wanted = _read_open(request.body) if request.body else OpenConsumer()
        opened = await self._broker.open_consumer(
            queue, name, idle_seconds=wanted.idle_seconds, key=request.principal.key
        )
        return Response(200, _encode(opened))

    async def delete(self, request: Request, queue: str, name: str) -> Response:
        """204: what it had leased is given back, and it is forgotten; 202 after a second that was too short."""
        return NO_CONTENT if await self._broker.delete_for_a_while(queue, name) else _NOT_YET

    async def lease(self, request: Request, queue: str, name: str) -> Response:
        """How far the lease is, after a second at most, and the wait for its first message."""
        wanted = _read_lease(request.body)
        lease = await self._broker.lease_for_a_while(
            queue,
            name,
            wanted.generation,
            wanted.number,
            acknowledge=wanted.acknowledge,
            max_messages=wanted.max_messages,
            max_bytes=wanted.max_bytes,
            wait_ms=wanted.wait_ms,
        )
        return Response(200, _encode(lease))

    async def read(self, request: Request, queue: str, name: str, number: str) -> Response:
        """Lines of messages; the header X-Forq-Next has the page to go on with."""
        page = query_number(request.query, "page", 0, 0, limits.SEQUENCE_MAX)
        pages = query_number(request.query, "pages", 1, 1, limits.CONSUMER_READ_PAGES_MAX)
        body, after = await self._broker.lease_lines(queue, name, number_of_path(number), page, pages)
        return lines_answer(body, after)

    async def acknowledge(self, request: Request, queue: str, name: str) -> Response:
        """The consumer, once the messages of the lease are removed, or after a second."""
        wanted = _read_acknowledge(request.body)
        info = await self._broker.acknowledge_for_a_while(queue, name, wanted.generation, wanted.number)
        return Response(200, _encode(info))


def consumer_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of consumers. route: makes one of an endpoint and what responds."""
    consumers = ConsumerEndpoints(broker)
    return [
        route(api.LIST_ALL_CONSUMERS, consumers.list_all),
        route(api.LIST_CONSUMERS, consumers.list),
        route(api.OPEN_CONSUMER, consumers.open),
        calling(route, api.SHOW_CONSUMER, broker.consumer),
        route(api.DELETE_CONSUMER, consumers.delete),
        route(api.LEASE_MESSAGES, consumers.lease),
        route(api.READ_LEASE, consumers.read),
        route(api.ACKNOWLEDGE_LEASE, consumers.acknowledge),
        calling(route, api.RELEASE_CONSUMER, broker.release_for_a_while),
    ]
