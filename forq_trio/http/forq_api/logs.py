"""The two logs over HTTP: lifecycle events, and the history of finished messages. Our additions to Forq's API.

The bytes of their pages are sent as they come from the reader.
"""

from functools import partial

from msgspec.structs import asdict

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.batches import stored
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute, calling
from forq_trio.http.forq_api.dead_letters import filter_in_query
from forq_trio.http.forq_api.ndjson import lines_answer
from forq_trio.http.forq_api.reading import query_choice, query_limit, query_number, query_range, query_text
from forq_trio.http.forq_api.sends import results_of
from forq_trio.http.long_poll import wait_for_events
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model import limits
from forq_trio.model.access import Scope
from forq_trio.model.events import read_events
from forq_trio.model.history import OUTCOMES, Outcome
from forq_trio.model.logs import LogName
from forq_trio.wire.endpoints import history as history_api
from forq_trio.wire.endpoints import logs as api
from forq_trio.wire.history import HistoryFilter, RequeueFinished
from forq_trio.wire.messages import SendResult, SendResults

_read_requeue = BodyReader(RequeueFinished)


class LogEndpoints:
    """Reads go through the pool of readers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def page(self, log: LogName, request: Request) -> Response:
        """A page of a log, a line each, and in headers where to go on. Only that of events may wait."""
        query = request.query
        queue = query_text(query, "queue")
        request.principal.check(Scope.BROWSE, queue)
        after, until = query_range(query)
        limit = query_limit(query, limits.LOG_PAGE_MAX)
        if log == "history":
            return lines_answer(*await self._broker.lines.log(log, after, until, limit, queue))
        wait_ms = query_number(query, "waitMs", 0, 0, limits.WAIT_MS_MAX)
        page = await wait_for_events(
            self._broker, request, after, until=until, limit=limit, queue=queue, wait_ms=wait_ms
        )
        return lines_answer(*page)

    async def events_of_message(self, request: Request, queue: str, message_id: str) -> Response:
        """The events of one message, in the queues that the key covers."""
        lines = (await self._broker.lines.message_events(queue, message_id)).splitlines(keepends=True)
        principal = request.principal
        if principal.token is not None:
            lines = [line for line in lines if principal.may(Scope.BROWSE, read_events(line)[0].queue)]
        return Response(200, b"[" + b",".join(lines) + b"]")

    async def search(self, request: Request, queue: str) -> Response:
        """A page of finished messages that match, newest first, and how far the search came."""
        outcomes: dict[str, Outcome | None] = {outcome: outcome for outcome in OUTCOMES}
        outcome = query_choice(request.query, "outcome", outcomes, None)
        wanted = HistoryFilter(**asdict(filter_in_query(request.query)), outcome=outcome)
        before = query_number(request.query, "before", 0, 1, limits.SEQUENCE_MAX)
        limit = query_limit(request.query, limits.SEARCH_PAGE_MAX, limits.SEARCH_PAGE_DEFAULT)
        page = await self._broker.search_history(queue, wanted, before=before or None, limit=limit)
        return json_response(page)

    async def requeue(self, request: Request, queue: str) -> Response:
        """Send finished messages again."""
        wanted = _read_requeue(request.body)
        outcomes = await self._broker.requeue_finished(queue, wanted.message_ids)
        return json_response(SendResults(results_of(wanted.message_ids, outcomes, stored, SendResult)))


def history_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of the history. route: makes one of an endpoint and what responds."""
    logs = LogEndpoints(broker)
    return [
        route(api.READ_HISTORY, partial(logs.page, "history")),
        calling(route, api.SHOW_HISTORY_RANGE, broker.history_range),
        route(history_api.SEARCH_HISTORY, logs.search),
        route(history_api.REQUEUE_FINISHED, logs.requeue),
        calling(route, history_api.PURGE_HISTORY, broker.purge_history, wraps=True),
        calling(route, history_api.SHOW_FINISHED_MESSAGE, broker.finished_message),
    ]


def event_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of events, of all messages and of one. route: makes one of an endpoint and what responds."""
    logs = LogEndpoints(broker)
    return [
        route(api.LIST_EVENTS, partial(logs.page, "events")),
        calling(route, api.SHOW_EVENT_RANGE, broker.event_range),
        route(api.LIST_MESSAGE_EVENTS, logs.events_of_message),
    ]
