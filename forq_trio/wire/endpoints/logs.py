"""Endpoints for the two logs: lifecycle events, and the history of finished messages."""

from forq_trio.model import errors, limits
from forq_trio.model.access import Scope
from forq_trio.model.events import MessageEvent
from forq_trio.model.history import OUTCOMES, FinishedMessage, FinishedPage
from forq_trio.wire.endpoints.dead_letters import FILTER
from forq_trio.wire.endpoints.endpoint import (
    ID,
    NDJSON,
    READ_ERRORS,
    STORE_ERRORS,
    WRITE_ERRORS,
    Answer,
    Endpoint,
    Parameter,
    limit_parameter,
    range_parameters,
)
from forq_trio.wire.errors import FIRST_HEADER, LAST_HEADER, NEXT_HEADER
from forq_trio.wire.export import ExportedMessage
from forq_trio.wire.logs import EventRange, HistoryRange, RequeueFinished
from forq_trio.wire.messages import SendResults
from forq_trio.wire.queues import Purged

_EVENTS, _HISTORY = "Events", "History"


def _page_parameters(what: str, number: str, of_queue: str, briefly: str = "") -> tuple[Parameter, ...]:
    """The parameters of a page. briefly: a word for `what`, "" for itself."""
    return (
        *range_parameters(briefly or what, number),
        limit_parameter(what, limits.LOG_PAGE_MAX),
        Parameter.text("queue", of_queue),
    )


LIST_EVENTS = Endpoint(
    "GET",
    "/events",
    Scope.BROWSE,
    name="listEvents",
    tag=_EVENTS,
    summary="What happened to messages, oldest first",
    description="One event a line, at most 4 MiB of them. The headers X-Forq-Next (pass it as `after` to go on), "
    "X-Forq-First and X-Forq-Last (which are kept) are always there. A token for some queues has to name one.",
    parameters=(
        *_page_parameters("events", "an id", "Only events of this queue."),
        Parameter.number("waitMs", "How long to wait for one.", 0, limits.WAIT_MS_MAX, 0),
    ),
    answers=(Answer(200, "The events, one a line.", MessageEvent, content_type=NDJSON),),
    errors=(errors.EventsOff, errors.EventsGone, *READ_ERRORS),
)
SHOW_EVENT_RANGE = Endpoint(
    "GET",
    "/events/range",
    Scope.BROWSE,
    name="showEventRange",
    tag=_EVENTS,
    summary="Which events are kept",
    answers=(Answer(200, "The ids of the oldest and the newest one.", EventRange),),
)
LIST_MESSAGE_EVENTS = Endpoint(
    "GET",
    "/queues/{queue}/messages/{messageId}/events",
    Scope.BROWSE,
    name="listMessageEvents",
    tag=_EVENTS,
    summary="What happened to one message, also to one that has gone",
    description="The latest 1,000, oldest first; a token sees those in queues that it covers.",
    answers=(Answer(200, "The events.", list[MessageEvent]),),
    errors=(errors.MessageNotFound, *READ_ERRORS),
)
READ_HISTORY = Endpoint(
    "GET",
    "/history",
    Scope.BROWSE,
    name="readHistory",
    tag=_HISTORY,
    summary="Finished messages, oldest first, page by page",
    description=f"A message a line. {NEXT_HEADER} is the `after` of the next page, {FIRST_HEADER} and {LAST_HEADER} "
    "are the ids that are kept. A token that does not cover all queues has to name one.",
    parameters=_page_parameters("messages", "a history id", "Only those of this queue.", "those"),
    answers=(Answer(200, "The messages, at most 4 MiB.", ExportedMessage, NDJSON),),
    errors=(errors.HistoryOff, errors.HistoryGone, *READ_ERRORS),
)
SHOW_HISTORY_RANGE = Endpoint(
    "GET",
    "/history/range",
    Scope.BROWSE,
    name="showHistoryRange",
    tag=_HISTORY,
    summary="Which history ids are kept",
    answers=(Answer(200, "Whether the history is on, and its first and last id.", HistoryRange),),
)
SEARCH_HISTORY = Endpoint(
    "GET",
    "/queues/{queue}/history",
    Scope.BROWSE,
    name="searchHistory",
    tag=_HISTORY,
    summary="Find finished messages of a queue, newest first",
    description="A page looks at 10,000 messages at most and says how far it came.",
    parameters=(
        Parameter.text("outcome", "How they ended.", enum=list(OUTCOMES)),
        Parameter.text("reason", "Why they were discarded, exactly."),
        *FILTER,
        Parameter("before", "query", "Only those with a history id below this.", {**ID, "minimum": 1}),
        limit_parameter("messages", limits.SEARCH_PAGE_MAX, limits.SEARCH_PAGE_DEFAULT),
    ),
    answers=(Answer(200, "Those that match.", FinishedPage),),
    errors=(errors.InvalidRequest, *READ_ERRORS),
)
SHOW_FINISHED_MESSAGE = Endpoint(
    "GET",
    "/queues/{queue}/history/{messageId}",
    Scope.BROWSE,
    name="showFinishedMessage",
    tag=_HISTORY,
    summary="One finished message, with its content and how it ended",
    answers=(Answer(200, "The message.", FinishedMessage),),
    errors=(errors.MessageNotFound, *READ_ERRORS),
)
REQUEUE_FINISHED = Endpoint(
    "POST",
    "/queues/{queue}/history/requeue",
    Scope.REDRIVE,
    name="requeueFinished",
    tag=_HISTORY,
    summary="Send finished messages again",
    description="Each becomes a new message with its content, attributes, priority and group; a former dead letter "
    "goes to the queue that it came from. A repeated request sends them once more.",
    body=RequeueFinished,
    answers=(Answer(200, "One result per id, in their order.", SendResults),),
    errors=(errors.OutOfRange.about("ids"), *STORE_ERRORS, *READ_ERRORS),
)
PURGE_HISTORY = Endpoint(
    "DELETE",
    "/queues/{queue}/history",
    Scope.ADMIN,
    name="purgeHistory",
    tag=_HISTORY,
    summary="Remove all messages of a queue from the history",
    description="Those that ended before this request.",
    takes_nothing=True,
    answers=(Answer(200, "How many there were.", Purged),),
    errors=WRITE_ERRORS,
)
