"""Endpoints for outboxes: relay messages, and ask how far an outbox was relayed."""

from forq_trio.model import errors
from forq_trio.model.access import Scope
from forq_trio.wire import outboxes as wire
from forq_trio.wire.endpoints.endpoint import STORE_ERRORS, Answer, Endpoint

_TAG = "Outboxes"
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
    body=wire.RelayRequest,
    answers=(Answer(200, "The position that is stored now.", wire.OutboxPosition),),
    errors=(errors.OutOfRange.about("messages"), errors.TooManyOutboxes, *STORE_ERRORS),
)
SHOW_OUTBOX = Endpoint(
    "GET",
    "/outboxes/{outbox}",
    Scope.PRODUCE,
    name="showOutbox",
    tag=_TAG,
    summary="How far an outbox was relayed",
    answers=(Answer(200, "The position; 0 for an outbox that is not known.", wire.OutboxPosition),),
    errors=STORE_ERRORS,
)
