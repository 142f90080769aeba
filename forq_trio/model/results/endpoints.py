"""The endpoint for those who wait for a result; it is given with an ack (`messages.endpoints`)."""

from typing import Annotated

from forq_trio.model import errors, limits
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import READ_ERRORS, WRITE_ERRORS, Answer, Endpoint
from forq_trio.model.queries import Query
from forq_trio.model.results.types import MessageResult
from forq_trio.model.values import bounded


class ResultQuery(Query, frozen=True, kw_only=True):
    """How long to wait for the end of a message."""

    wait_ms: Annotated[int, bounded(0, limits.WAIT_MS_MAX, "How long to wait until the message ends.")] = 0


SHOW_RESULT = Endpoint(
    "GET",
    "/queues/{queue}/messages/{messageId}/result",
    Scope.BROWSE,
    name="showResult",
    tag="Producer",
    summary="How a message ended, and its result, waiting for the end up to 30 seconds",
    description="`state` is `waiting` until the message has ended, and after the wait if it has not. An ack with a "
    "`result` stores the message with it; without one, and without the history, nothing is known of a message "
    "that ended before the request: 404 `not_found.message`. A dead letter has the state `dead`, and waits "
    "again once it is redriven (docs/results.md).",
    query=ResultQuery,
    answers=(Answer(200, "What is known of the message.", MessageResult),),
    errors=(errors.MessageNotFound, *READ_ERRORS, *WRITE_ERRORS),
)
