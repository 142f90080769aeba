"""The history of finished messages: pages as NDJSON, searches, one message, and its purge."""

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.administration import read_nothing
from forq_trio.http.forq_api.dead_letter_routes import FILTER
from forq_trio.http.forq_api.dead_letters import filter_in_query
from forq_trio.http.forq_api.ndjson import NDJSON, lines_answer
from forq_trio.http.forq_api.parameters import ID, READ_ERRORS, limit_parameter, range_parameters
from forq_trio.http.forq_api.reading import query_choice, query_limit, query_number, query_range, query_text
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Answer, MakeRoute, Operation, Parameter, Route
from forq_trio.model import errors, limits
from forq_trio.model.access import Scope
from forq_trio.model.history import OUTCOMES, FinishedMessage, FinishedPage, Outcome
from forq_trio.wire.errors import FIRST_HEADER, LAST_HEADER, NEXT_HEADER
from forq_trio.wire.export import ExportedMessage
from forq_trio.wire.logs import HistoryFilter, HistoryRange
from forq_trio.wire.queues import Purged

_TAG = "History"
_HERE = (errors.OutcomeUnknown, errors.StorageUnavailable, errors.Stopping, errors.StorageLost)
_encode = msgspec.json.Encoder().encode


PAGE = Operation(
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
    errors=(
        *READ_ERRORS,
        errors.InvalidQueueName,
        errors.OutOfRange,
        errors.OutOfRange.about("limit"),
        errors.HistoryGone,
        errors.HistoryOff,
    ),
)
RANGE = Operation(
    name="showHistoryRange",
    tag=_TAG,
    summary="Which history ids are kept",
    answers=(Answer(200, "Whether the history is on, and its first and last id.", HistoryRange),),
    errors=(errors.OutcomeUnknown,),
)
SEARCH = Operation(
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
    errors=(
        *READ_ERRORS,
        errors.InvalidQueueName,
        errors.OutOfRange,
        errors.OutOfRange.about("limit"),
        errors.InvalidParameter.about("outcome"),
        errors.InvalidParameter.about("attribute"),
        errors.InvalidAttributes,
        errors.InvalidRequest,
    ),
)
SHOW = Operation(
    name="showFinishedMessage",
    tag=_TAG,
    summary="One finished message, with its content and how it ended",
    answers=(Answer(200, "The message.", FinishedMessage),),
    errors=(*READ_ERRORS, errors.InvalidQueueName, errors.MalformedMessageId, errors.MessageNotFound),
)
PURGE = Operation(
    name="purgeHistory",
    tag=_TAG,
    summary="Remove all messages of a queue from the history",
    description="Those that ended before this request.",
    answers=(Answer(200, "How many there were.", Purged),),
    errors=(*_HERE, errors.InvalidQueueName, errors.Overloaded),
)


class HistoryEndpoints:
    """Reads go through the pool of readers; a purge is answered at its end."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def page(self, request: Request) -> Response:
        """Finished messages, a line each, and in headers where to go on."""
        query = request.query
        queue = query_text(query, "queue")
        request.principal.check(Scope.BROWSE, queue)
        after, until = query_range(query)
        limit = query_limit(query, limits.LOG_PAGE_MAX)
        page = await self._broker.log_lines("history", after, until, limit, queue)
        return lines_answer(*page)

    async def range(self, request: Request) -> Response:
        """Which ids are kept."""
        return Response(200, _encode(await self._broker.history_range()))

    async def search(self, request: Request, queue: str) -> Response:
        """A page of finished messages that match, newest first, and how far the search came."""
        outcomes: dict[str, Outcome | None] = {outcome: outcome for outcome in OUTCOMES}
        outcome = query_choice(request.query, "outcome", outcomes, None)
        wanted = HistoryFilter(**msgspec.structs.asdict(filter_in_query(request.query)), outcome=outcome)
        before = query_number(request.query, "before", 0, 1, limits.SEQUENCE_MAX)
        limit = query_limit(request.query, limits.SEARCH_PAGE_MAX, limits.SEARCH_PAGE_DEFAULT)
        page = await self._broker.search_history(queue, wanted, before=before or None, limit=limit)
        return Response(200, _encode(page))

    async def show(self, request: Request, queue: str, message_id: str) -> Response:
        """One finished message."""
        return Response(200, _encode(await self._broker.finished_message(queue, message_id)))

    async def purge(self, request: Request, queue: str) -> Response:
        """How many messages were removed: those that ended before this request."""
        read_nothing(request.body)
        return Response(200, _encode(Purged(await self._broker.purge_history(queue))))


def history_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of the history. route: makes one of method, path, endpoint, operation, scope."""
    endpoints = HistoryEndpoints(broker)
    base = "/queues/{queue}/history"
    return [
        route("GET", "/history", endpoints.page, PAGE, Scope.BROWSE),
        route("GET", "/history/range", endpoints.range, RANGE, Scope.BROWSE),
        route("GET", base, endpoints.search, SEARCH, Scope.BROWSE),
        route("DELETE", base, endpoints.purge, PURGE, Scope.ADMIN),
        route("GET", f"{base}/{{messageId}}", endpoints.show, SHOW, Scope.BROWSE),
    ]
