"""Backups of the running server: begin one, look at them. Our additions to Forq's API."""

import msgspec

from forq_trio.http.forq_api.calls import MakeRoute, calling, read_nothing
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Route
from forq_trio.jobs.backup import Backups
from forq_trio.wire.endpoints import backups as api

_encode = msgspec.json.Encoder().encode


class BackupEndpoints:
    """For the holder of the secret, or of a token with the scope admin for all queues."""

    def __init__(self, backups: Backups) -> None:
        self._backups = backups

    async def start(self, request: Request) -> Response:
        """202 with the backup, which runs on in the server."""
        read_nothing(request.body)
        token = request.principal.token
        return Response(202, _encode(await self._backups.start(None if token is None else token.name)))


def backup_routes(route: MakeRoute, backups: Backups) -> list[Route]:
    """The routes below /admin/backups. route: makes one of an endpoint and what responds."""
    endpoints = BackupEndpoints(backups)
    return [
        route(api.START_BACKUP, endpoints.start),
        calling(route, api.SHOW_BACKUPS, backups.state),
    ]
