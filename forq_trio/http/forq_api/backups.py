"""Backups of the running server: begin one, look at them. Our additions to Forq's API."""

import msgspec

from forq_trio.http.forq_api.administration import read_nothing
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Answer, MakeRoute, Operation, Route
from forq_trio.jobs.backup import Backups
from forq_trio.model import errors
from forq_trio.model.access import Scope
from forq_trio.wire import backups as wire

_encode = msgspec.json.Encoder().encode

START = Operation(
    name="startBackup",
    tag="Operation",
    summary="Begin a backup",
    description="It goes on in the server, beside everything else; one at a time.",
    answers=(Answer(202, "The backup that has begun.", wire.BackupInfo),),
    errors=(
        errors.InvalidRequest,
        errors.UnknownMember,
        errors.BackupRunning,
        errors.BackupImpossible,
        errors.OutcomeUnknown,
        errors.Stopping,
    ),
)
SHOW = Operation(
    name="showBackups",
    tag="Operation",
    summary="The latest backup, and the files that are there",
    answers=(Answer(200, "The backups.", wire.Backups),),
    errors=(errors.BackupImpossible, errors.OutcomeUnknown, errors.StorageUnavailable),
)


class BackupEndpoints:
    """For the holder of the secret, or of a token with the scope admin for all queues."""

    def __init__(self, backups: Backups) -> None:
        self._backups = backups

    async def start(self, request: Request) -> Response:
        """202 with the backup, which runs on in the server."""
        read_nothing(request.body)
        token = request.principal.token
        return Response(202, _encode(await self._backups.start(None if token is None else token.name)))

    async def show(self, request: Request) -> Response:
        """The latest with its progress, and all files."""
        return Response(200, _encode(await self._backups.state()))


def backup_routes(route: MakeRoute, backups: Backups) -> list[Route]:
    """The routes below /admin/backups. route: makes one of method, path, endpoint, operation, scope."""
    endpoints = BackupEndpoints(backups)
    return [
        route("POST", "/admin/backups", endpoints.start, START, Scope.ADMIN),
        route("GET", "/admin/backups", endpoints.show, SHOW, Scope.ADMIN),
    ]
