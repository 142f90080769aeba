"""Endpoints for those who look through the history of finished messages; `logs` has those that read it by pages."""

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import READ_ERRORS, STORE_ERRORS, WRITE_ERRORS, Answer, Endpoint
from forq_trio.model.logs.endpoints import HISTORY
from forq_trio.model.logs.history import FinishedMessage, FinishedPage
from forq_trio.model.logs.history_bodies import FinishedQuery, RequeueFinished
from forq_trio.model.messages.bodies import SendResults
from forq_trio.model.queues.bodies import Purged

SEARCH_HISTORY = Endpoint(
    "GET",
    "/queues/{queue}/history",
    Scope.BROWSE,
    name="searchHistory",
    tag=HISTORY,
    summary="Find finished messages of a queue, newest first",
    description="The parameters and pages are those of a search for dead letters, and `outcome`. `reason` is that of "
    "the history, ages count from the end, and `before` and `nextBefore` are history ids. A page reads at "
    "most 10,000 messages, and says how far it came.",
    query=FinishedQuery,
    answers=(Answer(200, "Those that match.", FinishedPage),),
    errors=(errors.InvalidRequest, *READ_ERRORS),
)
SHOW_FINISHED_MESSAGE = Endpoint(
    "GET",
    "/queues/{queue}/history/{messageId}",
    Scope.BROWSE,
    name="showFinishedMessage",
    tag=HISTORY,
    summary="One finished message, with its content and how it ended",
    description="404 `not_found.message`: it is not in the history.",
    answers=(Answer(200, "The message.", FinishedMessage),),
    errors=(errors.MessageNotFound, *READ_ERRORS),
)
REQUEUE_FINISHED = Endpoint(
    "POST",
    "/queues/{queue}/history/requeue",
    Scope.REDRIVE,
    name="requeueFinished",
    tag=HISTORY,
    summary="Send finished messages again",
    description="Up to 1,000. Each becomes a new message with its content, attributes, priority and group; a former "
    "dead letter goes to the queue that it came from. One that is not in the history has the code "
    "`not_found.message`. They stay in the history; a repeated request sends them once more.",
    body=RequeueFinished,
    answers=(Answer(200, "One result per id, in their order.", SendResults),),
    errors=(errors.OutOfRange.about("ids"), *STORE_ERRORS, *READ_ERRORS),
)
PURGE_HISTORY = Endpoint(
    "DELETE",
    "/queues/{queue}/history",
    Scope.ADMIN,
    name="purgeHistory",
    tag=HISTORY,
    summary="Remove all messages of a queue from the history",
    description="Those that ended before this request. It works in small steps; other calls are served between them.",
    takes_nothing=True,
    answers=(Answer(200, "How many there were.", Purged),),
    errors=WRITE_ERRORS,
)
