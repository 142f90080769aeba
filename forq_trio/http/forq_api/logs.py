"""The two logs over HTTP: lifecycle events, and the history of finished messages. Our additions to Forq's API.

The bytes of their pages are sent as they come from the reader.
"""

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.batches import stored
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute, calling
from forq_trio.http.forq_api.ndjson import lines_answer
from forq_trio.http.forq_api.queries import QueryReader
from forq_trio.http.forq_api.sends import results_of
from forq_trio.http.long_poll import wait_for_events
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model.access.types import Scope
from forq_trio.model.logs import endpoints as api
from forq_trio.model.logs import history_endpoints as history_api
from forq_trio.model.logs.bodies import EventsQuery, HistoryPageQuery
from forq_trio.model.logs.events import read_events
from forq_trio.model.logs.history_bodies import RequeueFinished
from forq_trio.model.messages.bodies import SendResult, SendResults

_read_events = QueryReader(EventsQuery)
_read_history = QueryReader(HistoryPageQuery)
_read_requeue = BodyReader(RequeueFinished)


class LogEndpoints:
    """Reads go through the pool of readers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def events(self, request: Request) -> Response:
        """A page of events, one a line; headers say where the next page begins."""
        wanted = _read_events(request.query)
        request.principal.check(Scope.BROWSE, wanted.queue)
        return lines_answer(*await wait_for_events(self._broker, request, **wanted.arguments()))

    async def history(self, request: Request) -> Response:
        """A page of finished messages, in the form of a page of events."""
        wanted = _read_history(request.query)
        request.principal.check(Scope.BROWSE, wanted.queue)
        return lines_answer(*await self._broker.lines.log("history", **wanted.arguments()))

    async def events_of_message(self, request: Request, queue: str, message_id: str) -> Response:
        """The events of one message, in the queues that the key covers."""
        lines = (await self._broker.lines.message_events(queue, message_id)).splitlines(keepends=True)
        principal = request.principal
        if principal.token is not None:
            lines = [line for line in lines if principal.may(Scope.BROWSE, read_events(line)[0].queue)]
        return Response(200, b"[" + b",".join(lines) + b"]")

    async def requeue(self, request: Request, queue: str) -> Response:
        """Send finished messages again."""
        wanted = _read_requeue(request.body)
        outcomes = await self._broker.requeue_finished(queue, wanted.message_ids)
        return json_response(SendResults(results_of(wanted.message_ids, outcomes, stored, SendResult)))


def history_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of the history. route: makes one of an endpoint and its function."""
    logs = LogEndpoints(broker)
    return [
        route(api.READ_HISTORY, logs.history),
        calling(route, api.SHOW_HISTORY_RANGE, broker.history_range),
        calling(route, history_api.SEARCH_HISTORY, broker.search_history),
        route(history_api.REQUEUE_FINISHED, logs.requeue),
        calling(route, history_api.PURGE_HISTORY, broker.purge_history, wraps=True),
        calling(route, history_api.SHOW_FINISHED_MESSAGE, broker.finished_message),
    ]


def event_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of events, of all messages and of one. route: makes one of an endpoint and its function."""
    logs = LogEndpoints(broker)
    return [
        route(api.LIST_EVENTS, logs.events),
        calling(route, api.SHOW_EVENT_RANGE, broker.event_range),
        route(api.LIST_MESSAGE_EVENTS, logs.events_of_message),
    ]
