"""Redrives and deletions of all dead letters that match: tasks of the server. Our additions to Forq's API."""

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute, calling
from forq_trio.http.forq_api.dead_letters import DeadLetterEndpoints, check_target
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Route
from forq_trio.model import errors
from forq_trio.wire.dead_letters import RedriveInfo, RedriveList, StartRedrive
from forq_trio.wire.endpoints import dead_letters as api

_read_start = BodyReader(StartRedrive)
_encode = msgspec.json.Encoder().encode


class RedriveEndpoints:
    """The tasks of one queue; a task of another queue is not found."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def start(self, request: Request, queue: str) -> Response:
        """202 with the task, which runs on in the server."""
        wanted = _read_start(request.body)
        check_target(request, wanted.target)
        token = request.principal.token
        return Response(202, _encode(await self._start(queue, wanted, None if token is None else token.name)))

    async def _start(self, queue: str, wanted: StartRedrive, started_by: str | None) -> RedriveInfo:
        if wanted.action == "redrive":
            return await self._broker.start_redrive(
                queue,
                wanted.filter,
                target=wanted.target,
                rate_per_second=wanted.rate_per_second,
                dry_run=wanted.dry_run,
                started_by=started_by,
            )
        if wanted.target is not None:
            raise Refused(errors.InvalidRequest, "What is deleted goes to no target.", field="target")
        return await self._broker.start_deletion(
            queue,
            wanted.filter,
            rate_per_second=wanted.rate_per_second,
            dry_run=wanted.dry_run,
            started_by=started_by,
        )

    async def list(self, request: Request, queue: str) -> Response:
        """The tasks that run or are paused and the latest that ended."""
        return Response(200, _encode(RedriveList(await self._broker.redrives(queue))))


def dead_letter_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes below /queues/{queue}/dead-letters. route: makes one of an endpoint and what responds."""
    letters = DeadLetterEndpoints(broker)
    redrives = RedriveEndpoints(broker)
    return [
        route(api.SEARCH_DEAD_LETTERS, letters.search),
        route(api.REDRIVE_DEAD_LETTERS, letters.redrive),
        route(api.DELETE_DEAD_LETTERS, letters.delete),
        route(api.START_REDRIVE, redrives.start),
        route(api.LIST_REDRIVES, redrives.list),
        calling(route, api.SHOW_REDRIVE, broker.redrive_info),
        calling(route, api.DISMISS_REDRIVE, broker.dismiss_redrive),
        calling(route, api.PAUSE_REDRIVE, broker.pause_redrive),
        calling(route, api.RESUME_REDRIVE, broker.resume_redrive),
        calling(route, api.CANCEL_REDRIVE, broker.cancel_redrive),
        calling(route, api.SHOW_DEAD_LETTER, broker.dead_letter),
        route(api.RESUBMIT_DEAD_LETTER, letters.resubmit),
    ]
