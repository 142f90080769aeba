"""The history of finished messages: pages as NDJSON, searches, one message, and its purge."""

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.calls import MakeRoute, calling
from forq_trio.http.forq_api.dead_letters import filter_in_query
from forq_trio.http.forq_api.ndjson import lines_answer
from forq_trio.http.forq_api.reading import query_choice, query_limit, query_number, query_range, query_text
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model import limits
from forq_trio.model.access import Scope
from forq_trio.model.history import OUTCOMES, Outcome
from forq_trio.wire.endpoints import history as api
from forq_trio.wire.logs import HistoryFilter


class HistoryEndpoints:
    """Reads go through the pool of readers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def page(self, request: Request) -> Response:
        """Finished messages, a line each, and in headers where to go on."""
        query = request.query
        queue = query_text(query, "queue")
        request.principal.check(Scope.BROWSE, queue)
        after, until = query_range(query)
        limit = query_limit(query, limits.LOG_PAGE_MAX)
        page = await self._broker.log_lines("history", after, until, limit, queue)
        return lines_answer(*page)

    async def search(self, request: Request, queue: str) -> Response:
        """A page of finished messages that match, newest first, and how far the search came."""
        outcomes: dict[str, Outcome | None] = {outcome: outcome for outcome in OUTCOMES}
        outcome = query_choice(request.query, "outcome", outcomes, None)
        wanted = HistoryFilter(**msgspec.structs.asdict(filter_in_query(request.query)), outcome=outcome)
        before = query_number(request.query, "before", 0, 1, limits.SEQUENCE_MAX)
        limit = query_limit(request.query, limits.SEARCH_PAGE_MAX, limits.SEARCH_PAGE_DEFAULT)
        page = await self._broker.search_history(queue, wanted, before=before or None, limit=limit)
        return json_response(page)


def history_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of the history. route: makes one of an endpoint and what responds."""
    endpoints = HistoryEndpoints(broker)
    return [
        route(api.READ_HISTORY, endpoints.page),
        calling(route, api.SHOW_HISTORY_RANGE, broker.history_range),
        route(api.SEARCH_HISTORY, endpoints.search),
        calling(route, api.PURGE_HISTORY, broker.purge_history, wraps=True),
        calling(route, api.SHOW_FINISHED_MESSAGE, broker.finished_message),
    ]
