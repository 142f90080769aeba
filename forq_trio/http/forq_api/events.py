"""Lifecycle events over HTTP: their bytes come from the reader as they are sent. Our additions to Forq's API."""

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.ndjson import NDJSON, lines_answer
from forq_trio.http.forq_api.parameters import READ_ERRORS, limit_parameter, range_parameters
from forq_trio.http.forq_api.reading import query_limit, query_number, query_range, query_text
from forq_trio.http.long_poll import wait_for_events
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Answer, MakeRoute, Operation, Parameter, Route
from forq_trio.model import errors, limits
from forq_trio.model.access import Scope
from forq_trio.model.events import MessageEvent, read_events
from forq_trio.wire.logs import EventRange

_TAG = "Events"
_encode = msgspec.json.Encoder().encode

LIST_EVENTS = Operation(
    name="listEvents",
    tag=_TAG,
    summary="What happened to messages, oldest first",
    description="One event a line, at most 4 MiB of them. The headers X-Forq-Next (pass it as `after` to go on), "
    "X-Forq-First and X-Forq-Last (which are kept) are always there. A token for some queues has to name one.",
    parameters=(
        *range_parameters("events", "an id"),
        limit_parameter("events", limits.LOG_PAGE_MAX),
        Parameter("queue", "query", "Only events of this queue.", {"type": "string"}),
        Parameter(
            "waitMs",
            "query",
            "How long to wait for one.",
            {"type": "integer", "minimum": 0, "maximum": limits.WAIT_MS_MAX, "default": 0},
        ),
    ),
    answers=(Answer(200, "The events, one a line.", MessageEvent, content_type=NDJSON),),
    errors=(
        errors.InvalidQueueName,
        errors.OutOfRange,
        errors.OutOfRange.about("limit"),
        errors.OutOfRange.about("waitMs"),
        errors.EventsOff,
        errors.EventsGone,
        *READ_ERRORS,
    ),
)
SHOW_RANGE = Operation(
    name="showEventRange",
    tag=_TAG,
    summary="Which events are kept",
    answers=(Answer(200, "The ids of the oldest and the newest one.", EventRange),),
    errors=(errors.OutcomeUnknown,),
)
LIST_OF_MESSAGE = Operation(
    name="listMessageEvents",
    tag=_TAG,
    summary="What happened to one message, also to one that has gone",
    description="The latest 1,000, oldest first; a token sees those in queues that it covers.",
    answers=(Answer(200, "The events.", list[MessageEvent]),),
    errors=(errors.InvalidQueueName, errors.MalformedMessageId, errors.MessageNotFound, *READ_ERRORS),
)


class EventEndpoints:
    """Reads only: from the cache, or through the pool of readers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def list(self, request: Request) -> Response:
        """A page of events, as NDJSON."""
        query = request.query
        queue = query_text(query, "queue")
        request.principal.check(Scope.BROWSE, queue)
        after, until = query_range(query)
        limit = query_limit(query, limits.LOG_PAGE_MAX)
        wait_ms = query_number(query, "waitMs", 0, 0, limits.WAIT_MS_MAX)
        page = await wait_for_events(
            self._broker, request, after, until=until, limit=limit, queue=queue, wait_ms=wait_ms
        )
        return lines_answer(*page)

    async def range(self, request: Request) -> Response:
        """Which events are kept."""
        return Response(200, _encode(await self._broker.event_range()))

    async def of_message(self, request: Request, queue: str, message_id: str) -> Response:
        """The events of one message, in the queues that the key covers."""
        lines = (await self._broker.message_event_lines(queue, message_id)).splitlines(keepends=True)
        principal = request.principal
        if principal.token is not None:
            lines = [line for line in lines if principal.may(Scope.BROWSE, read_events(line)[0].queue)]
        return Response(200, b"[" + b",".join(lines) + b"]")


def event_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """Events of all messages and of one. route: makes one of method, path, endpoint, operation, scope."""
    endpoints = EventEndpoints(broker)
    message = "/queues/{queue}/messages/{messageId}"
    return [
        route("GET", "/events", endpoints.list, LIST_EVENTS, Scope.BROWSE),
        route("GET", "/events/range", endpoints.range, SHOW_RANGE, Scope.BROWSE),
        route("GET", f"{message}/events", endpoints.of_message, LIST_OF_MESSAGE, Scope.BROWSE),
    ]
