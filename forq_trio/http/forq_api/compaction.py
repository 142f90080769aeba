"""Giving free pages of the file back while the server runs. Our additions to Forq's API."""

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.administration import read_nothing
from forq_trio.http.forq_api.calls import MakeRoute
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Route
from forq_trio.wire.endpoints import compaction as api

_encode = msgspec.json.Encoder().encode


class CompactionEndpoints:
    """For the holder of the secret, or of a token with the scope admin for all queues."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def show(self, request: Request) -> Response:
        """Its progress, and how much of the file is free."""
        return Response(200, _encode(await self._broker.compaction_info()))

    async def start(self, request: Request) -> Response:
        """The compaction, which runs on in the server."""
        read_nothing(request.body)
        token = request.principal.token
        started = await self._broker.start_compaction(started_by=None if token is None else token.name)
        return Response(200, _encode(started))

    async def pause(self, request: Request) -> Response:
        """Between two steps."""
        read_nothing(request.body)
        return Response(200, _encode(await self._broker.pause_compaction()))

    async def stop(self, request: Request) -> Response:
        """Between two steps, for good."""
        read_nothing(request.body)
        return Response(200, _encode(await self._broker.stop_compaction()))


def compaction_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes below /admin/compaction. route: makes one of an endpoint and what responds."""
    endpoints = CompactionEndpoints(broker)
    return [
        route(api.SHOW_COMPACTION, endpoints.show),
        route(api.START_COMPACTION, endpoints.start),
        route(api.PAUSE_COMPACTION, endpoints.pause),
        route(api.STOP_COMPACTION, endpoints.stop),
    ]
