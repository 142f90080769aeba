"""Giving free pages of the file back while the server runs. Our additions to Forq's API."""

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.administration import read_nothing
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Answer, MakeRoute, Operation, Route
from forq_trio.model import errors
from forq_trio.model.access import Scope
from forq_trio.wire.compaction import CompactionInfo

_encode = msgspec.json.Encoder().encode
_CHANGING = (errors.InvalidRequest, errors.UnknownMember, errors.OutcomeUnknown)


def _operation(name: str, summary: str, *more: type[errors.ForqError]) -> Operation:
    return Operation(
        name=name,
        tag="Operation",
        summary=summary,
        answers=(Answer(200, "The compaction as it is then.", CompactionInfo),),
        errors=(*_CHANGING, *more),
    )


SHOW = Operation(
    name="showCompaction",
    tag="Operation",
    summary="The compaction that runs or ended last, and how much of the file is free",
    answers=(Answer(200, "The compaction.", CompactionInfo),),
    errors=(errors.OutcomeUnknown,),
)
START = _operation(
    "startCompaction",
    "Give free pages of the file back to the disk, or let a paused compaction go on",
    errors.CompactionImpossible,
    errors.Stopping,
)
PAUSE = _operation("pauseCompaction", "Pause the compaction until it is started again")
STOP = _operation("stopCompaction", "End the compaction; what it gave back stays given back")


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
    """The routes below /admin/compaction. route: makes one of method, path, endpoint, operation, scope."""
    endpoints = CompactionEndpoints(broker)
    return [
        route("GET", "/admin/compaction", endpoints.show, SHOW, Scope.ADMIN),
        route("POST", "/admin/compaction", endpoints.start, START, Scope.ADMIN),
        route("POST", "/admin/compaction/pause", endpoints.pause, PAUSE, Scope.ADMIN),
        route("POST", "/admin/compaction/stop", endpoints.stop, STOP, Scope.ADMIN),
    ]
