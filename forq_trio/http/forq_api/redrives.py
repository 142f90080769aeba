"""Redrives of all dead letters that match: start, list, show, cancel. Our additions to Forq's API."""

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.broker.redrives import RedriveTask
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.dead_letters import check_target, filter_of
from forq_trio.http.forq_api.views import redrive_view
from forq_trio.http.message import Request, Response
from forq_trio.model.clock import Clock
from forq_trio.model.errors import RedriveNotFound
from forq_trio.wire.dead_letters import RedriveList, StartRedrive

_read_start = BodyReader(StartRedrive)
_encode = msgspec.json.Encoder().encode


class RedriveEndpoints:
    """The tasks of one queue; a task of another queue is not found."""

    def __init__(self, broker: Broker, clock: Clock) -> None:
        self._broker = broker
        self._clock = clock

    async def start(self, request: Request, queue: str) -> Response:
        """202 with the task, which runs on in the server."""
        wanted = _read_start(request.body)
        check_target(request, wanted.target)
        task = self._broker.redrives.start(
            queue,
            filter_of(wanted.filter, self._clock.now_ms()),
            target=wanted.target,
            rate_per_second=wanted.rate_per_second,
            dry_run=wanted.dry_run,
        )
        return Response(202, _encode(redrive_view(task)))

    async def list(self, request: Request, queue: str) -> Response:
        """The tasks that run and the latest that ended."""
        self._broker.check_dead_letter_queue(queue)
        tasks = self._broker.redrives.all(queue)
        return Response(200, _encode(RedriveList([redrive_view(task) for task in tasks])))

    async def show(self, request: Request, queue: str, redrive_id: str) -> Response:
        """One task, with its progress."""
        return Response(200, _encode(redrive_view(self._find(queue, redrive_id))))

    async def cancel(self, request: Request, queue: str, redrive_id: str) -> Response:
        """Stop a task between two transactions; answered with the task once it has ended."""
        self._find(queue, redrive_id)
        task = await self._broker.redrives.cancel(redrive_id)
        return Response(200, _encode(redrive_view(task)))

    def _find(self, queue: str, redrive_id: str) -> RedriveTask:
        task = self._broker.redrives.get(redrive_id)
        if task.queue != queue:
            raise RedriveNotFound
        return task
