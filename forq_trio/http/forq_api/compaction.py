"""Giving free pages of the file back while the server runs. Our additions to Forq's API."""

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.calls import MakeRoute, calling, read_nothing
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Route
from forq_trio.wire.endpoints import compaction as api

_encode = msgspec.json.Encoder().encode


class CompactionEndpoints:
    """For the holder of the secret, or of a token with the scope admin for all queues."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def start(self, request: Request) -> Response:
        """The compaction, which runs on in the server."""
        read_nothing(request.body)
        token = request.principal.token
        started = await self._broker.start_compaction(started_by=None if token is None else token.name)
        return Response(200, _encode(started))


def compaction_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes below /admin/compaction. route: makes one of an endpoint and what responds."""
    endpoints = CompactionEndpoints(broker)
    return [
        calling(route, api.SHOW_COMPACTION, broker.compaction_info),
        route(api.START_COMPACTION, endpoints.start),
        calling(route, api.PAUSE_COMPACTION, broker.pause_compaction),
        calling(route, api.STOP_COMPACTION, broker.stop_compaction),
    ]
