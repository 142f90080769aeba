"""Endpoints for readers of the two logs: lifecycle events, and the history of finished messages."""

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import NDJSON, READ_ERRORS, Answer, Endpoint, Header, declare_topic
from forq_trio.model.error_answers import FIRST_HEADER, LAST_HEADER, NEXT_HEADER
from forq_trio.model.logs.bodies import EventRange, EventsQuery, HistoryPageQuery, HistoryRange
from forq_trio.model.logs.events import MessageEvent
from forq_trio.model.messages.export import ExportedMessage

_EVENTS, HISTORY = "Events", "History"
declare_topic(
    "History",
    "With FORQ_HISTORY=on, finished messages are stored, with their content and how they ended; "
    "docs/history.md says for how long, and what that costs.",
)
declare_topic("Events", "What happened to messages, with FORQ_EVENTS=on; see docs/events.md.")
_ID = {"type": "integer", "minimum": 0}
_HEADERS = (
    Header(NEXT_HEADER, "The `after` of the next page, also after an empty one.", _ID, always=True),
    Header(FIRST_HEADER, "The first id that is stored.", _ID, always=True),
    Header(LAST_HEADER, "The last id that is stored.", _ID, always=True),
)

LIST_EVENTS = Endpoint(
    "GET",
    "/events",
    Scope.BROWSE,
    name="listEvents",
    tag=_EVENTS,
    summary="What happened to messages, oldest first",
    description="One event a line, at most 4 MiB of them. A token for some queues has to name one. With `queue` a "
    "page may be empty while X-Forq-Next is greater than `after`: continue from there. 410 "
    "`forq.events_gone`: events after `after` were removed; continue from the `first` of the range, or "
    "from 0. 409 `forq.events_off`: none are stored.",
    query=EventsQuery,
    answers=(Answer(200, "The events, one a line.", MessageEvent, NDJSON, headers=_HEADERS),),
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
    description="A message a line, at most 4 MiB (or one message). A token for some queues has to name one. Ids grow "
    "by one in the order in which messages ended; purges leave gaps. `outcome` and `reason` are explained "
    "in docs/history.md#what-is-in-it, what a dead letter has in "
    "docs/dead-letters.md#what-is-stored-with-each. 410 `forq.history_gone`: retention has removed "
    "messages after `after`; 409 `forq.history_off`: the history is off and empty.",
    query=HistoryPageQuery,
    answers=(Answer(200, "The messages, at most 4 MiB.", ExportedMessage, NDJSON, headers=_HEADERS),),
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
