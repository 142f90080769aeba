"""Endpoints for outboxes: relay messages, ask how far an outbox was relayed; and messages that were set aside."""

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import READ_ERRORS, STORE_ERRORS, WRITE_ERRORS, Answer, Endpoint
from forq_trio.model.outboxes import bodies
from forq_trio.model.outboxes.types import OutboxPosition
from forq_trio.model.paths import PROGRAM_NAME, PathParameter, declare_path

_TAG = "Outboxes"
declare_path(outbox=PathParameter("The id of the outbox.", PROGRAM_NAME, errors.InvalidName))
RELAY_OUTBOX = Endpoint(
    "POST",
    "/outboxes/{outbox}/messages",
    Scope.PRODUCE,
    name="relayOutbox",
    tag=_TAG,
    summary="Store the next messages of an outbox, each exactly once",
    description="The messages are stored together with the position, in order, up to the first message that is "
    "refused; the answer names it. If the stored position is not `after`, nothing is done. The token needs the scope "
    "`produce` for the queue of each message; without it the message is refused with `forbidden`. An outbox belongs to "
    "the token that relayed it first; the server's secret may relay every one.",
    body=bodies.RelayRequest,
    answers=(Answer(200, "The position that is stored now.", OutboxPosition),),
    errors=(errors.OutOfRange.about("messages"), errors.TooManyOutboxes, *STORE_ERRORS),
)
SHOW_OUTBOX = Endpoint(
    "GET",
    "/outboxes/{outbox}",
    Scope.PRODUCE,
    name="showOutbox",
    tag=_TAG,
    summary="How far an outbox was relayed",
    answers=(Answer(200, "The position; 0 for an unknown outbox.", OutboxPosition),),
    errors=STORE_ERRORS,
)
LIST_SET_ASIDE = Endpoint(
    "GET",
    "/set-aside",
    Scope.ADMIN,
    name="listSetAside",
    tag=_TAG,
    summary="Messages of forq.send that were refused for good",
    description="Only PostgreSQL has them; with a file they are in the application's database.",
    query=bodies.SetAsideQuery,
    answers=(
        Answer(
            200, "A page by id, shorter if the messages are large; empty at the end.", bodies.SetAsidePage
        ),
    ),
    errors=READ_ERRORS,
)
RETRY_SET_ASIDE = Endpoint(
    "POST",
    "/set-aside/retry",
    Scope.ADMIN,
    name="retrySetAside",
    tag=_TAG,
    summary="Send again messages that were set aside, behind all others",
    body=bodies.SetAsideIds,
    answers=(Answer(200, "How many of these ids were found.", bodies.SetAsideCount),),
    errors=WRITE_ERRORS,
)
DELETE_SET_ASIDE = Endpoint(
    "POST",
    "/set-aside/delete",
    Scope.ADMIN,
    name="deleteSetAside",
    tag=_TAG,
    summary="Delete messages that were set aside, for good",
    body=bodies.SetAsideIds,
    answers=(Answer(200, "How many of these ids were found.", bodies.SetAsideCount),),
    errors=WRITE_ERRORS,
)
