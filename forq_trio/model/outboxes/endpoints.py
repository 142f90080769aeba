"""Endpoints for outboxes: relay messages, ask how far an outbox was relayed; and messages that were set aside."""

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import READ_ERRORS, STORE_ERRORS, WRITE_ERRORS, Answer, Endpoint, declare_topic
from forq_trio.model.outboxes import bodies
from forq_trio.model.outboxes.types import OutboxPosition
from forq_trio.model.paths import PROGRAM_NAME, PathParameter, declare_path

_TAG = "Outboxes"
declare_topic(
    "Outboxes",
    "A relay moves the messages of an application's own database into queues, each exactly once "
    "(docs/outbox.md). `outbox` is the id of the table, made by the application's side. A token needs "
    "the scope `produce` for the queue of each message.",
)
declare_path(
    outbox=PathParameter(
        "The id of the outbox: 1 to 128 characters of A-Z a-z 0-9 . _ : -.", PROGRAM_NAME, errors.InvalidName
    )
)
RELAY_OUTBOX = Endpoint(
    "POST",
    "/outboxes/{outbox}/messages",
    Scope.PRODUCE,
    name="relayOutbox",
    tag=_TAG,
    summary="Store the next messages of an outbox, each exactly once",
    description="At most 1,000 messages and 4 MiB. They are stored together with the position, in order, up to the "
    "first message that is refused; the answer names it, and those behind it were not looked at. `after` "
    "is the position that is stored; if another one is, nothing is done, and the answer is that one. So a "
    "request can be repeated, and two relays can run at once. It is one commit; beside other calls it is "
    "several, each of at most 250 messages and 256 KiB (or one message) and its position.\n\n"
    "The token needs the scope `produce` for the queue of each message; without it the message is refused "
    "with `forbidden`. An outbox belongs to the token that relayed it first; the server's secret may "
    "relay every one. At most 10,000 outboxes are remembered, and 2,500 of one token: 503 "
    "`forq.too_many_outboxes`. docs/outbox.md explains all of it.",
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
    description="0 for an unknown one.",
    answers=(Answer(200, "The position; 0 for an unknown outbox.", OutboxPosition),),
    errors=STORE_ERRORS,
)
LIST_SET_ASIDE = Endpoint(
    "GET",
    "/set-aside",
    Scope.ADMIN,
    name="listSetAside",
    tag=_TAG,
    summary="Messages sent in SQL that were refused for good",
    description="By id, at most 4 MiB a page. Ask for the next page with the last id, until one is empty. "
    "Applications sent them in SQL (docs/outbox.md#on-postgresql). Only PostgreSQL has them; with a file "
    "they are in the application's database. The secret is needed, or a token with the scope for all "
    "queues.",
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
    description="One that is refused again is set aside again, with another id. The secret is needed, or a token with "
    "the scope for all queues.",
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
    description="The secret is needed, or a token with the scope for all queues.",
    body=bodies.SetAsideIds,
    answers=(Answer(200, "How many of these ids were found.", bodies.SetAsideCount),),
    errors=WRITE_ERRORS,
)
