"""Redrives of all dead letters that match: start, list, show, cancel. Our additions to Forq's API."""

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.dead_letters import check_target
from forq_trio.http.message import Request, Response
from forq_trio.wire.dead_letters import RedriveList, StartRedrive

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
        task = await self._broker.start_redrive(
            queue,
            wanted.filter,
            target=wanted.target,
            rate_per_second=wanted.rate_per_second,
            dry_run=wanted.dry_run,
        )
        return Response(202, _encode(task))

    async def list(self, request: Request, queue: str) -> Response:
        """The tasks that run and the latest that ended."""
        return Response(200, _encode(RedriveList(await self._broker.redrives(queue))))

    async def show(self, request: Request, queue: str, redrive_id: str) -> Response:
        """One task, with its progress."""
        return Response(200, _encode(await self._broker.redrive_info(queue, redrive_id)))

    async def cancel(self, request: Request, queue: str, redrive_id: str) -> Response:
        """Stop a task between two transactions; answered with the task once it has ended."""
        return Response(200, _encode(await self._broker.cancel_redrive(queue, redrive_id)))
