"""Dead letters: find, show, redrive, resubmit, delete, and tasks over all that match. Our additions to Forq's API."""

from forq_trio.broker.broker import Broker
from forq_trio.broker.views import changed_redrive
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute, calling
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model import errors
from forq_trio.model.access.types import Principal, Scope
from forq_trio.model.dead_letters import bodies
from forq_trio.model.dead_letters import endpoints as api

_read_redrive = BodyReader(bodies.RedriveMessages)
_read_start = BodyReader(bodies.StartRedrive)
_read_resubmission = BodyReader(bodies.Resubmission)


class DeadLetterEndpoints:
    """All endpoints refuse a queue that takes no dead letters."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def redrive(self, request: Request, queue: str) -> Response:
        """Redrive the named dead letters."""
        wanted = _read_redrive(request.body)
        check_target(request, wanted.target)
        results = await self._broker.redrive(queue, wanted.message_ids, target=wanted.target)
        return json_response(bodies.MoveResults(results))

    async def resubmit(self, request: Request, queue: str, message_id: str) -> Response:
        """Send an edited copy of a dead letter."""
        wanted = _read_resubmission(request.body)
        check_target(request, wanted.target)
        if request.principal.token is not None and wanted.target is None:
            original = await self._broker.message(queue, message_id)
            _check_sender(request.principal, original.source_queue)
        produced = await self._broker.resubmit(
            queue,
            message_id,
            content=wanted.content,
            attributes=wanted.attributes,
            target=wanted.target,
            remove=wanted.remove,
        )
        return json_response(produced)

    async def start_task(self, request: Request, queue: str) -> Response:
        """Start a task that runs in the server, and answer 202 with it."""
        wanted = _read_start(request.body)
        check_target(request, wanted.target)
        if wanted.action == "delete" and wanted.target is not None:
            raise Refused(errors.InvalidRequest, "What is deleted goes to no target.", field="target")
        started = await self._broker.redrive_tasks.start(
            queue,
            self._broker.lists.times_of(wanted.filter),
            action=wanted.action,
            target=wanted.target,
            rate_per_second=wanted.rate_per_second,
            dry_run=wanted.dry_run,
            started_by=request.principal.key.name or None,
        )
        return json_response(changed_redrive(started), 202)


def check_target(request: Request, target: str | None) -> None:
    """Raise Forbidden unless the client may move messages to `target`, if one is named."""
    if target is not None:
        request.principal.check(Scope.REDRIVE, target)


def _check_sender(principal: Principal, target: str | None) -> None:
    """Raise Forbidden unless the client may send an edited copy to `target`, the source queue; None: there is none."""
    if target is not None and not principal.may(Scope.REDRIVE, target):
        principal.check(Scope.PRODUCE, target)


def dead_letter_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes below /queues/{queue}/dead-letters. route: makes one of an endpoint and its function."""
    letters = DeadLetterEndpoints(broker)
    return [
        calling(route, api.SEARCH_DEAD_LETTERS, broker.search_dead_letters),
        route(api.REDRIVE_DEAD_LETTERS, letters.redrive),
        calling(route, api.DELETE_DEAD_LETTERS, broker.delete_dead_letters, wraps=True),
        route(api.START_REDRIVE, letters.start_task),
        calling(route, api.LIST_REDRIVES, broker.redrives, wraps=True),
        calling(route, api.SHOW_REDRIVE, broker.redrive_info),
        calling(route, api.DISMISS_REDRIVE, broker.dismiss_redrive),
        calling(route, api.PAUSE_REDRIVE, broker.pause_redrive),
        calling(route, api.RESUME_REDRIVE, broker.resume_redrive),
        calling(route, api.CANCEL_REDRIVE, broker.cancel_redrive),
        calling(route, api.SHOW_DEAD_LETTER, broker.dead_letter),
        route(api.RESUBMIT_DEAD_LETTER, letters.resubmit),
    ]
