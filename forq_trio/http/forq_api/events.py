"""Lifecycle events over HTTP: their bytes come from the reader as they are sent. Our additions to Forq's API."""

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.calls import MakeRoute, calling
from forq_trio.http.forq_api.ndjson import lines_answer
from forq_trio.http.forq_api.reading import query_limit, query_number, query_range, query_text
from forq_trio.http.long_poll import wait_for_events
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Route
from forq_trio.model import limits
from forq_trio.model.access import Scope
from forq_trio.model.events import read_events
from forq_trio.wire.endpoints import events as api


class EventEndpoints:
    """Reads only: from the cache, or through the pool of readers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def list(self, request: Request) -> Response:
        """A page of events, as NDJSON."""
        query = request.query
        queue = query_text(query, "queue")
        request.principal.check(Scope.BROWSE, queue)
        after, until = query_range(query)
        limit = query_limit(query, limits.LOG_PAGE_MAX)
        wait_ms = query_number(query, "waitMs", 0, 0, limits.WAIT_MS_MAX)
        page = await wait_for_events(
            self._broker, request, after, until=until, limit=limit, queue=queue, wait_ms=wait_ms
        )
        return lines_answer(*page)

    async def of_message(self, request: Request, queue: str, message_id: str) -> Response:
        """The events of one message, in the queues that the key covers."""
        lines = (await self._broker.message_event_lines(queue, message_id)).splitlines(keepends=True)
        principal = request.principal
        if principal.token is not None:
            lines = [line for line in lines if principal.may(Scope.BROWSE, read_events(line)[0].queue)]
        return Response(200, b"[" + b",".join(lines) + b"]")


def event_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """Events of all messages and of one. route: makes one of an endpoint and what responds."""
    endpoints = EventEndpoints(broker)
    return [
        route(api.LIST_EVENTS, endpoints.list),
        calling(route, api.SHOW_EVENT_RANGE, broker.event_range),
        route(api.LIST_MESSAGE_EVENTS, endpoints.of_message),
    ]
