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
    description="Messages and position are one commit. They are stored in their order up to the first that is refused, "
    "which the answer names. If the stored position is not `after`, nothing is done. The token needs the scope "
    "`produce` for the queue of each message; one without is refused with `forbidden`. An outbox belongs to the token "
    "that relayed it first; the server's secret may relay every one.",
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
    answers=(Answer(200, "The position; 0 for an outbox that is not known.", OutboxPosition),),
    errors=STORE_ERRORS,
)
LIST_SET_ASIDE = Endpoint(
    "GET",
    "/set-aside",
    Scope.ADMIN,
    name="listSetAside",
    tag=_TAG,
    summary="Messages of forq.send that were refused for good",
    description="With a file there are none: there the application's database has them.",
    query=bodies.SetAsideQuery,
    answers=(
        Answer(
            200, "A page by id, shorter where they have many bytes; empty at the end.", bodies.SetAsidePage
        ),
    ),
    errors=READ_ERRORS,
)
RETRY_SET_ASIDE = Endpoint(
    "POST",
    "/set-aside/retry",
    Scope.ADMIN,
    name="putBack",
    tag=_TAG,
    summary="Send messages that were set aside again, behind all others",
    body=bodies.SetAsideIds,
    answers=(Answer(200, "How many of them there were.", bodies.SetAsideCount),),
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
    answers=(Answer(200, "How many of them there were.", bodies.SetAsideCount),),
    errors=WRITE_ERRORS,
)
