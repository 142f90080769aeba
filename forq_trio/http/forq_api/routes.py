"""The routes of Forq's API, each with its endpoint, and their part of the OpenAPI document."""

from forq_trio.broker.broker import Broker
from forq_trio.http.access import Access
from forq_trio.http.forq_api import codes
from forq_trio.http.forq_api.administration_routes import administration_routes
from forq_trio.http.forq_api.backups import backup_routes
from forq_trio.http.forq_api.batches import BatchEndpoints
from forq_trio.http.forq_api.compaction import compaction_routes
from forq_trio.http.forq_api.consumer_routes import consumer_routes
from forq_trio.http.forq_api.dead_letter_routes import dead_letter_routes
from forq_trio.http.forq_api.errors import answer_error, answer_forqs_error
from forq_trio.http.forq_api.events import event_routes
from forq_trio.http.forq_api.history import history_routes
from forq_trio.http.forq_api.messages import MessageEndpoints
from forq_trio.http.forq_api.parameters import QUEUES_PAGE, limit_parameter
from forq_trio.http.forq_api.publishing import publishing_routes
from forq_trio.http.forq_api.queues import QueueEndpoints
from forq_trio.http.forq_api.refusals import is_forqs_path
from forq_trio.http.forq_api.tokens import token_routes
from forq_trio.http.router import Answer, Endpoint, MakeRoute, Operation, Parameter, Route
from forq_trio.jobs.backup import Backups
from forq_trio.model import limits
from forq_trio.model.access import Scope
from forq_trio.model.messages import MessageInfo, NewMessage
from forq_trio.monitor.monitor import Monitor
from forq_trio.wire.errors import ANSWER_HEADER, FULL, RECEIPT_HEADER
from forq_trio.wire.messages import (
    MessageList,
    NewMessages,
    NextMessage,
    ReceivedMessages,
    ReceiveRequest,
    SendResults,
)
from forq_trio.wire.queues import QueueHealth, QueueInfo, QueueList
from forq_trio.wire.receipts import AckRequest, ExtendRequest, NackRequest, ReceiptResults, ReleaseRequest

PREFIX = "/api/v1"

_QUEUE = (codes.QUEUE_NAME_INVALID,)
_BODY = (codes.BODY_INVALID, codes.UNKNOWN_FIELD)
_WRITER = (codes.INTERNAL, codes.UNHEALTHY, codes.OVERLOADED, codes.STOPPING)
_SENDING = (
    *_QUEUE,
    codes.PRODUCE_TO_DLQ,
    codes.BODY_INVALID,
    codes.BODY_TOO_LARGE,
    codes.UNKNOWN_FIELD,
    codes.PROCESS_AFTER_IN_PAST,
    codes.PROCESS_AFTER_TOO_FAR,
    codes.PROCESS_AFTER_WITH_DELAY,
    codes.PRIORITY_OUT_OF_RANGE,
    codes.DELAY_OUT_OF_RANGE,
    codes.TTL_OUT_OF_RANGE,
    codes.ATTRIBUTES_INVALID,
    codes.DEDUPLICATION_ID_INVALID,
    codes.DEDUPLICATION_WINDOW_OUT_OF_RANGE,
    codes.GROUP_INVALID,
    codes.MAX_ATTEMPTS_OUT_OF_RANGE,
    codes.DEAD_LETTER_QUEUE_INVALID,
    codes.QUEUE_FULL,
    codes.STORAGE_FULL,
    codes.STORAGE_LOST,
    *_WRITER,
)
_SETTLING = (
    *_QUEUE,
    codes.MESSAGE_ID_INVALID,
    codes.RECEIPT_INVALID,
    codes.RECEIPT_MISSING,
    codes.MESSAGE_NOT_FOUND,
    *_WRITER,
)
_SETTLING_MANY = (*_QUEUE, *_BODY, codes.RECEIPTS_OUT_OF_RANGE, *_WRITER)

_RECEIPT = Parameter(
    RECEIPT_HEADER,
    "header",
    "The receipt the message came with. Only the receipt of the latest delivery succeeds; without "
    "one the id alone decides, unless the server demands receipts.",
    {"type": "string"},
)
_ORDER = Parameter(
    "order",
    "query",
    "`fifo` for the queue's own order, `shuffle` for random messages.",
    {"type": "string", "enum": ["fifo", "shuffle"], "default": "fifo"},
)
_WAIT = Parameter(
    "waitMs",
    "query",
    "How long to wait for a message.",
    {"type": "integer", "minimum": 0, "maximum": limits.WAIT_MS_MAX, "default": limits.WAIT_MS_MAX},
)
_ANSWER = Parameter(
    ANSWER_HEADER,
    "header",
    "`full`: all members of a message and of an error, not Forq's alone.",
    {"type": "string", "enum": [FULL]},
)
_PEEK = Parameter(
    "peek",
    "query",
    "Only peek: the message is not leased, and has no receipt.",
    {"type": "boolean", "default": False},
)
_LIMIT = limit_parameter("messages", limits.BROWSE_PAGE_MAX, limits.PEEK_DEFAULT)
_SETTLED = (Answer(200, "One result per receipt, in their order.", ReceiptResults),)

SEND = Operation(
    name="sendMessage",
    tag="Producer",
    summary="Send a message",
    description="Forq's own members are content and processAfter. With those alone, others are ignored; a message with "
    "any of the rest may have no unknown ones. A message with a known deduplicationId is answered like any other.",
    body=NewMessage,
    parameters=(_ANSWER,),
    answers=(Answer(204, "The message is stored durably."),),
    codes=_SENDING,
)
RECEIVE = Operation(
    name="receiveMessage",
    tag="Consumer",
    summary="Receive the next message, waiting up to 30 seconds",
    description="The message is this consumer's for as long as a lease of the queue is, 5 minutes if nothing else was "
    "set. The answer comes as soon as there is one.",
    parameters=(_WAIT, _ORDER, _PEEK, _ANSWER),
    answers=(Answer(200, "A message.", NextMessage), Answer(204, "There was none.")),
    codes=(
        *_QUEUE,
        codes.WAIT_OUT_OF_RANGE,
        codes.ORDER_INVALID,
        codes.PEEK_INVALID,
        *_WRITER,
        codes.STORAGE_LOST,
        codes.READ_TIMEOUT,
    ),
)
ACK = Operation(
    name="ackMessage",
    tag="Consumer",
    summary="Remove a message that is done with",
    description="Without a receipt it succeeds whether or not the message was there.",
    parameters=(_RECEIPT, _ANSWER),
    answers=(Answer(204, "The message is gone."),),
    codes=_SETTLING,
)
NACK = Operation(
    name="nackMessage",
    tag="Consumer",
    summary="Give back a message that failed",
    description="It comes back after 1, 5, 15, 30 or 60 seconds by attempt, and after the fifth it moves to the "
    "dead-letter queue, if nothing else was set for it or its queue. Without a receipt it succeeds whether or not the "
    "message was there.",
    parameters=(_RECEIPT, _ANSWER),
    answers=(Answer(204, "The message is given back, or failed."),),
    codes=_SETTLING,
)
SEND_BATCH = Operation(
    name="sendMessages",
    tag="Producer",
    summary="Send up to 1,000 messages in one commit",
    description="Each is validated alone: the valid ones are stored, all or none of them.",
    body=NewMessages,
    answers=(Answer(200, "One result per message, in their order.", SendResults),),
    codes=(*_SENDING, codes.TOO_MANY_MESSAGES),
)
RECEIVE_BATCH = Operation(
    name="receiveMessages",
    tag="Consumer",
    summary="Receive up to 100 messages, waiting for the first",
    body=ReceiveRequest,
    answers=(Answer(200, "The messages; none after the wait.", ReceivedMessages),),
    codes=(
        *_QUEUE,
        *_BODY,
        codes.MAX_OUT_OF_RANGE,
        codes.WAIT_OUT_OF_RANGE,
        codes.LEASE_OUT_OF_RANGE,
        *_WRITER,
        codes.STORAGE_LOST,
        codes.READ_TIMEOUT,
    ),
)
ACK_BATCH = Operation(
    name="ackMessages",
    tag="Consumer",
    summary="Remove messages that are done with",
    body=AckRequest,
    answers=_SETTLED,
    codes=_SETTLING_MANY,
)
NACK_BATCH = Operation(
    name="nackMessages",
    tag="Consumer",
    summary="Give back messages that failed",
    body=NackRequest,
    answers=_SETTLED,
    codes=(*_SETTLING_MANY, codes.DELAY_OUT_OF_RANGE, codes.REASON_OUT_OF_RANGE),
)
EXTEND_BATCH = Operation(
    name="extendLeases",
    tag="Consumer",
    summary="Extend the leases of messages",
    description="leaseMs counts from now; without it, as long as a lease of the queue is. 0 ends the lease at "
    "once, the attempt counted.",
    body=ExtendRequest,
    answers=_SETTLED,
    codes=(*_SETTLING_MANY, codes.LEASE_OUT_OF_RANGE),
)
RELEASE_BATCH = Operation(
    name="releaseMessages",
    tag="Consumer",
    summary="Give back messages unprocessed",
    description="They are ready again at their old positions, the attempt uncounted.",
    body=ReleaseRequest,
    answers=_SETTLED,
    codes=(*_SETTLING_MANY, codes.DELAY_OUT_OF_RANGE),
)
LIST_QUEUES = Operation(
    name="listQueues",
    tag="Queues",
    summary="All queues, page by page",
    parameters=QUEUES_PAGE,
    answers=(Answer(200, "The queues by name.", QueueList),),
    codes=(codes.INTERNAL, codes.LIMIT_OUT_OF_RANGE),
)
SHOW_QUEUE = Operation(
    name="showQueue",
    tag="Queues",
    summary="One queue",
    description="A queue exists from the first message, or the first setting, until it is removed.",
    answers=(Answer(200, "The queue.", QueueInfo),),
    codes=(*_QUEUE, codes.QUEUE_NOT_FOUND, *codes.READER),
)
SHOW_HEALTH = Operation(
    name="showHealth",
    tag="Queues",
    summary="How well a queue is",
    description="A verdict in words, its causes, and what to do. Told from what happened in the last minutes; trouble "
    "is shown once it lasted one minute (broken) or five (attention).",
    answers=(Answer(200, "The verdict.", QueueHealth),),
    codes=(*_QUEUE, codes.QUEUE_NOT_FOUND, codes.INTERNAL),
)
SHOW_MESSAGE = Operation(
    name="showMessage",
    tag="Queues",
    summary="Show a message without changing it",
    answers=(Answer(200, "The message.", MessageInfo),),
    codes=(*_QUEUE, codes.MESSAGE_ID_INVALID, codes.MESSAGE_NOT_FOUND, *codes.READER),
)
CANCEL = Operation(
    name="cancelMessage",
    tag="Producer",
    summary="Remove a message before anybody receives it",
    description="One that is ready, delayed or held. Its deduplicationId is remembered for its window all the same.",
    answers=(Answer(204, "The message is removed."),),
    codes=(
        *(*_QUEUE, codes.MESSAGE_ID_INVALID, codes.MESSAGE_NOT_FOUND, codes.MESSAGE_IN_FLIGHT),
        *(codes.STORAGE_LOST, *_WRITER),
    ),
)
PEEK = Operation(
    name="peekMessages",
    tag="Queues",
    summary="Peek at the next ready messages",
    parameters=(_LIMIT, _ORDER),
    answers=(Answer(200, "The messages.", MessageList),),
    codes=(*_QUEUE, codes.LIMIT_OUT_OF_RANGE, codes.ORDER_INVALID, *codes.READER),
)


_PARTS = (
    administration_routes,
    dead_letter_routes,
    publishing_routes,
    history_routes,
    consumer_routes,
    event_routes,
    token_routes,
    compaction_routes,
)
"""Parts of the API, each with its routes: made of what makes one, and the broker."""


def forq_routes(
    broker: Broker,
    access: Access,
    monitor: Monitor,
    *,
    backups: Backups | None = None,
    require_receipt: bool = False,
) -> list[Route]:
    """All routes under /api/v1, each behind a gate of `access`.

    backups: None where there are none over HTTP. require_receipt: see FORQ_REQUIRE_RECEIPT.
    """

    def route(
        method: str,
        path: str,
        endpoint: Endpoint,
        operation: Operation,
        scope: Scope,
        *,
        head: bool = True,
        gate_checks_scope: bool = True,
    ) -> Route:
        path = PREFIX + path
        gate = access.gate(scope, path if gate_checks_scope else None)
        if is_forqs_path(path):  # Forq ignores parameters that it does not know
            return Route(method, path, endpoint, operation, answer_forqs_error, gate, head)
        parameters = operation.query_names
        return Route(method, path, endpoint, operation, answer_error, gate, head, parameters=parameters)

    messages = MessageEndpoints(broker, require_receipt=require_receipt)
    batches = BatchEndpoints(broker)
    queues = QueueEndpoints(broker, monitor)
    return [
        route("POST", "/queues/{queue}/messages", messages.send, SEND, Scope.PRODUCE),
        route(
            "GET",
            "/queues/{queue}/messages",
            messages.receive,  # checks the scope itself: a peek needs another one than a lease
            RECEIVE,
            Scope.CONSUME,
            head=False,
            gate_checks_scope=False,
        ),
        route("POST", "/queues/{queue}/messages/{messageId}/ack", messages.ack, ACK, Scope.CONSUME),
        route("POST", "/queues/{queue}/messages/{messageId}/nack", messages.nack, NACK, Scope.CONSUME),
        route("POST", "/queues/{queue}/messages/batch", batches.send, SEND_BATCH, Scope.PRODUCE),
        route(
            "POST",
            "/queues/{queue}/messages/receive",
            batches.receive,  # as above
            RECEIVE_BATCH,
            Scope.CONSUME,
            gate_checks_scope=False,
        ),
        *_settling_routes(route, batches),
        route("GET", "/queues", queues.list, LIST_QUEUES, Scope.BROWSE),
        route("GET", "/queues/{queue}", queues.show, SHOW_QUEUE, Scope.BROWSE),
        route("GET", "/queues/{queue}/health", queues.health, SHOW_HEALTH, Scope.BROWSE),
        route("GET", "/queues/{queue}/messages/{messageId}", queues.message, SHOW_MESSAGE, Scope.BROWSE),
        route("DELETE", "/queues/{queue}/messages/{messageId}", messages.cancel, CANCEL, Scope.CANCEL),
        route("GET", "/queues/{queue}/peek", queues.peek, PEEK, Scope.BROWSE),
        *[each for part in _PARTS for each in part(route, broker)],
        *([] if backups is None else backup_routes(route, backups)),
    ]


def _settling_routes(route: MakeRoute, batches: BatchEndpoints) -> list[Route]:
    """The routes that settle many messages by their receipts."""
    return [
        route("POST", "/queues/{queue}/messages/ack", batches.ack, ACK_BATCH, Scope.CONSUME),
        route("POST", "/queues/{queue}/messages/nack", batches.nack, NACK_BATCH, Scope.CONSUME),
        route("POST", "/queues/{queue}/messages/extend", batches.extend, EXTEND_BATCH, Scope.CONSUME),
        route("POST", "/queues/{queue}/messages/release", batches.release, RELEASE_BATCH, Scope.CONSUME),
    ]
