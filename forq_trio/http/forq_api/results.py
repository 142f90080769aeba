"""Results over HTTP: how a message ended, waiting for it. Our addition to Forq's API."""

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.calls import MakeRoute
from forq_trio.http.forq_api.queries import QueryReader
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model import limits
from forq_trio.model.checks import check_range
from forq_trio.model.results import endpoints as api

_read_query = QueryReader(api.ResultQuery)


class ResultEndpoints:
    """Reads go through the pool of readers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def show(self, request: Request, queue: str, message_id: str) -> Response:
        """What is known of a message, waiting for its end; a disconnect of the client ends the wait."""
        wait_ms = check_range("wait_ms", _read_query(request.query).wait_ms, 0, limits.WAIT_MS_MAX)
        found = await self._broker.message_result(queue, message_id)
        if found.state == "waiting" and wait_ms:
            async with request.cancelled_on_disconnect():
                found = await self._broker.message_result(queue, message_id, wait_ms=wait_ms)
        return json_response(found)


def result_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of results. route: makes one of an endpoint and its function."""
    results = ResultEndpoints(broker)
    return [route(api.SHOW_RESULT, results.show)]
