"""Endpoints for readers of the two logs: lifecycle events, and the history of finished messages."""

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import NDJSON, READ_ERRORS, Answer, Endpoint
from forq_trio.model.error_answers import FIRST_HEADER, LAST_HEADER, NEXT_HEADER
from forq_trio.model.logs.bodies import EventRange, EventsQuery, HistoryPageQuery, HistoryRange
from forq_trio.model.logs.events import MessageEvent
from forq_trio.model.messages.export import ExportedMessage

_EVENTS, HISTORY = "Events", "History"


LIST_EVENTS = Endpoint(
    "GET",
    "/events",
    Scope.BROWSE,
    name="listEvents",
    tag=_EVENTS,
    summary="What happened to messages, oldest first",
    description="One event a line, at most 4 MiB of them. The headers X-Forq-Next (the `after` to go on with), "
    "X-Forq-First and X-Forq-Last (the range that is stored) are always there. A token for some queues has to "
    "name one.",
    query=EventsQuery,
    answers=(Answer(200, "The events, one a line.", MessageEvent, content_type=NDJSON),),
    errors=(errors.EventsOff, errors.EventsGone, *READ_ERRORS),
)
SHOW_EVENT_RANGE = Endpoint(
    "GET",
    "/events/range",
    Scope.BROWSE,
    name="showEventRange",
    tag=_EVENTS,
    summary="The range of the stored events",
    answers=(Answer(200, "The ids of the oldest and the newest one.", EventRange),),
)
LIST_MESSAGE_EVENTS = Endpoint(
    "GET",
    "/queues/{queue}/messages/{messageId}/events",
    Scope.BROWSE,
    name="listMessageEvents",
    tag=_EVENTS,
    summary="What happened to one message, even if it is gone",
    description="The latest 1,000, oldest first; a token sees those in queues that it covers.",
    answers=(Answer(200, "The events.", list[MessageEvent]),),
    errors=(errors.MessageNotFound, *READ_ERRORS),
)
READ_HISTORY = Endpoint(
    "GET",
    "/history",
    Scope.BROWSE,
    name="readHistory",
    tag=HISTORY,
    summary="Finished messages, oldest first, page by page",
    description=f"A message a line. {NEXT_HEADER} is the `after` of the next page, {FIRST_HEADER} and "
    f"{LAST_HEADER} are the range that is stored. A token that does not cover all queues has to name one.",
    query=HistoryPageQuery,
    answers=(Answer(200, "The messages, at most 4 MiB.", ExportedMessage, NDJSON),),
    errors=(errors.HistoryOff, errors.HistoryGone, *READ_ERRORS),
)
SHOW_HISTORY_RANGE = Endpoint(
    "GET",
    "/history/range",
    Scope.BROWSE,
    name="showHistoryRange",
    tag=HISTORY,
    summary="The range of the stored history ids",
    answers=(Answer(200, "Whether the history is on, and its first and last id.", HistoryRange),),
)
