"""Endpoints for the history of finished messages."""

from forq_trio.model import errors, limits
from forq_trio.model.access import Scope
from forq_trio.model.history import OUTCOMES, FinishedMessage, FinishedPage
from forq_trio.wire.endpoints.dead_letters import FILTER
from forq_trio.wire.endpoints.endpoint import (
    ID,
    NDJSON,
    READ_ERRORS,
    WRITE_ERRORS,
    Answer,
    Endpoint,
    Parameter,
    limit_parameter,
    range_parameters,
)
from forq_trio.wire.errors import FIRST_HEADER, LAST_HEADER, NEXT_HEADER
from forq_trio.wire.export import ExportedMessage
from forq_trio.wire.logs import HistoryRange
from forq_trio.wire.queues import Purged

_TAG = "History"
READ_HISTORY = Endpoint(
    "GET",
    "/history",
    Scope.BROWSE,
    name="readHistory",
    tag=_TAG,
    summary="Finished messages, oldest first, page by page",
    description=f"A message a line. {NEXT_HEADER} is the `after` of the next page, {FIRST_HEADER} and {LAST_HEADER} "
    "are the ids that are kept. A token that does not cover all queues has to name one.",
    parameters=(
        *range_parameters("those", "a history id"),
        limit_parameter("messages", limits.LOG_PAGE_MAX),
        Parameter("queue", "query", "Only those of this queue.", {"type": "string"}),
    ),
    answers=(Answer(200, "The messages, at most 4 MiB.", ExportedMessage, NDJSON),),
    errors=(errors.HistoryOff, errors.HistoryGone, *READ_ERRORS),
)
SHOW_HISTORY_RANGE = Endpoint(
    "GET",
    "/history/range",
    Scope.BROWSE,
    name="showHistoryRange",
    tag=_TAG,
    summary="Which history ids are kept",
    answers=(Answer(200, "Whether the history is on, and its first and last id.", HistoryRange),),
)
SEARCH_HISTORY = Endpoint(
    "GET",
    "/queues/{queue}/history",
    Scope.BROWSE,
    name="searchHistory",
    tag=_TAG,
    summary="Find finished messages of a queue, newest first",
    description="A page looks at 10,000 messages at most and says how far it came.",
    parameters=(
        Parameter("outcome", "query", "How they ended.", {"type": "string", "enum": list(OUTCOMES)}),
        Parameter("reason", "query", "Why they were discarded, exactly.", {"type": "string"}),
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
    tag=_TAG,
    summary="One finished message, with its content and how it ended",
    answers=(Answer(200, "The message.", FinishedMessage),),
    errors=(errors.MessageNotFound, *READ_ERRORS),
)
PURGE_HISTORY = Endpoint(
    "DELETE",
    "/queues/{queue}/history",
    Scope.ADMIN,
    name="purgeHistory",
    tag=_TAG,
    summary="Remove all messages of a queue from the history",
    description="Those that ended before this request.",
    takes_nothing=True,
    answers=(Answer(200, "How many there were.", Purged),),
    errors=WRITE_ERRORS,
)
