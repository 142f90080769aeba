"""Results over HTTP: how a message ended, waiting for it. Our addition to Forq's API."""

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.calls import MakeRoute
from forq_trio.http.forq_api.queries import QueryReader
from forq_trio.http.long_poll import wait_for_result
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model.results import endpoints as api

_read_query = QueryReader(api.ResultQuery)


class ResultEndpoints:
    """Reads go through the pool of readers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def show(self, request: Request, queue: str, message_id: str) -> Response:
        """What is known of a message, waiting for its end."""
        wanted = _read_query(request.query)
        found = await wait_for_result(self._broker, request, queue, message_id, wait_ms=wanted.wait_ms)
        return json_response(found)


def result_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of results. route: makes one of an endpoint and its function."""
    results = ResultEndpoints(broker)
    return [route(api.SHOW_RESULT, results.show)]
