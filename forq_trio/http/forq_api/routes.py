"""The routes of Forq's API: each with its endpoint and, beside it, what the OpenAPI document says."""

from forq_trio import limits
from forq_trio.broker import Broker
from forq_trio.clock import Clock
from forq_trio.http import codes
from forq_trio.http.forq_api import bodies
from forq_trio.http.forq_api.batches import BatchEndpoints
from forq_trio.http.forq_api.errors import answer_error
from forq_trio.http.forq_api.messages import MessageEndpoints
from forq_trio.http.forq_api.queues import QueueEndpoints
from forq_trio.http.router import Answer, Endpoint, Gate, Operation, Parameter, Route

PREFIX = "/api/v1"

_QUEUE = (codes.QUEUE_NAME_INVALID,)
_WRITER = (codes.INTERNAL, codes.UNHEALTHY, codes.OVERLOADED, codes.STOPPING)
_READER = (codes.INTERNAL, codes.UNHEALTHY, codes.STOPPING, codes.READ_TIMEOUT)
_SENDING = (
    *_QUEUE,
    codes.PRODUCE_TO_DLQ,
    codes.BODY_INVALID,
    codes.BODY_TOO_LARGE,
    codes.PROCESS_AFTER_IN_PAST,
    codes.PROCESS_AFTER_TOO_FAR,
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
_SETTLING_MANY = (*_QUEUE, codes.BODY_INVALID, codes.RECEIPTS_OUT_OF_RANGE, *_WRITER)

_RECEIPT = Parameter(
    "X-Forq-Receipt",
    "header",
    "The receipt the message came with. With it only the current holder of the message succeeds; without "
    "it the id alone decides, unless the server demands receipts.",
    {"type": "string"},
)
_LIMIT = Parameter(
    "limit",
    "query",
    "The most messages wanted.",
    {"type": "integer", "minimum": 1, "maximum": limits.BROWSE_PAGE_MAX, "default": limits.PEEK_DEFAULT},
)
_SETTLED = (Answer(200, "One result per receipt, in their order.", bodies.SettledReceipts),)

SEND = Operation(
    name="sendMessage",
    tag="Producer",
    summary="Send a message",
    body=bodies.NewMessage,
    answers=(Answer(204, "The message is stored durably."),),
    codes=_SENDING,
)
RECEIVE = Operation(
    name="receiveMessage",
    tag="Consumer",
    summary="Receive the next message, waiting up to 30 seconds",
    description="The message is this consumer's for 5 minutes. The answer comes as soon as there is one.",
    answers=(Answer(200, "A message.", bodies.ReceivedMessage), Answer(204, "There was none.")),
    codes=(*_QUEUE, *_WRITER),
)
ACK = Operation(
    name="ackMessage",
    tag="Consumer",
    summary="Remove a message that is done with",
    description="Without a receipt it succeeds whether or not the message was there.",
    parameters=(_RECEIPT,),
    answers=(Answer(204, "The message is gone."),),
    codes=_SETTLING,
)
NACK = Operation(
    name="nackMessage",
    tag="Consumer",
    summary="Give back a message that failed",
    description="It comes back after 1, 5, 15, 30 or 60 seconds by attempt; after the fifth it moves to the "
    "dead-letter queue. Without a receipt it succeeds whether or not the message was there.",
    parameters=(_RECEIPT,),
    answers=(Answer(204, "The message is given back, or failed."),),
    codes=_SETTLING,
)
SEND_BATCH = Operation(
    name="sendMessages",
    tag="Producer",
    summary="Send up to 1,000 messages in one commit",
    description="Each is validated alone: the valid ones are stored, all or none of them.",
    body=bodies.NewMessages,
    answers=(Answer(200, "One result per message, in their order.", bodies.SendResults),),
    codes=(
        *_QUEUE,
        codes.PRODUCE_TO_DLQ,
        codes.BODY_INVALID,
        codes.BODY_TOO_LARGE,
        codes.TOO_MANY_MESSAGES,
        codes.PROCESS_AFTER_IN_PAST,
        codes.PROCESS_AFTER_TOO_FAR,
        *_WRITER,
    ),
)
RECEIVE_BATCH = Operation(
    name="receiveMessages",
    tag="Consumer",
    summary="Receive up to 100 messages, waiting for the first",
    body=bodies.ReceiveRequest,
    answers=(Answer(200, "The messages; none after the wait.", bodies.ReceivedMessages),),
    codes=(
        *_QUEUE,
        codes.BODY_INVALID,
        codes.MAX_OUT_OF_RANGE,
        codes.WAIT_OUT_OF_RANGE,
        codes.LEASE_OUT_OF_RANGE,
        *_WRITER,
    ),
)
ACK_BATCH = Operation(
    name="ackMessages",
    tag="Consumer",
    summary="Remove messages that are done with",
    body=bodies.AckRequest,
    answers=_SETTLED,
    codes=_SETTLING_MANY,
)
NACK_BATCH = Operation(
    name="nackMessages",
    tag="Consumer",
    summary="Give back messages that failed",
    body=bodies.NackRequest,
    answers=_SETTLED,
    codes=(*_SETTLING_MANY, codes.DELAY_OUT_OF_RANGE, codes.REASON_OUT_OF_RANGE),
)
EXTEND_BATCH = Operation(
    name="extendLeases",
    tag="Consumer",
    summary="Keep messages for longer",
    description="leaseMs counts from now; 0 ends the lease at once, the attempt counted.",
    body=bodies.ExtendRequest,
    answers=_SETTLED,
    codes=(*_SETTLING_MANY, codes.LEASE_OUT_OF_RANGE),
)
RELEASE_BATCH = Operation(
    name="releaseMessages",
    tag="Consumer",
    summary="Give back messages unprocessed",
    description="They return to their old places, the attempt uncounted.",
    body=bodies.ReleaseRequest,
    answers=_SETTLED,
    codes=(*_SETTLING_MANY, codes.DELAY_OUT_OF_RANGE),
)
LIST_QUEUES = Operation(
    name="listQueues",
    tag="Queues",
    summary="All queues",
    answers=(Answer(200, "The queues by name.", bodies.QueueList),),
    codes=(codes.INTERNAL,),
)
SHOW_QUEUE = Operation(
    name="showQueue",
    tag="Queues",
    summary="One queue",
    description="A queue nobody ever used has zeros: queues come into being by being sent to.",
    answers=(Answer(200, "The queue.", bodies.QueueDetail),),
    codes=(*_QUEUE, *_READER),
)
SHOW_MESSAGE = Operation(
    name="showMessage",
    tag="Queues",
    summary="Look at a message without touching it",
    answers=(Answer(200, "The message.", bodies.MessageView),),
    codes=(*_QUEUE, codes.MESSAGE_ID_INVALID, codes.MESSAGE_NOT_FOUND, *_READER),
)
PEEK = Operation(
    name="peekMessages",
    tag="Queues",
    summary="Look at the next ready messages without touching them",
    parameters=(_LIMIT,),
    answers=(Answer(200, "The messages in claim order.", bodies.MessageViews),),
    codes=(*_QUEUE, codes.LIMIT_OUT_OF_RANGE, *_READER),
)


def forq_routes(broker: Broker, clock: Clock, gate: Gate, *, require_receipt: bool = False) -> list[Route]:
    """All routes under /api/v1/queues, behind `gate`. require_receipt: see FORQ_REQUIRE_RECEIPT."""

    def route(method: str, path: str, endpoint: Endpoint, operation: Operation, head: bool = True) -> Route:
        return Route(method, PREFIX + path, endpoint, operation, gate, answer_error, head)

    messages = MessageEndpoints(broker, require_receipt=require_receipt)
    batches = BatchEndpoints(broker)
    queues = QueueEndpoints(broker, clock)
    return [
        route("POST", "/queues/{queue}/messages", messages.send, SEND),
        route("GET", "/queues/{queue}/messages", messages.receive, RECEIVE, head=False),
        route("POST", "/queues/{queue}/messages/{messageId}/ack", messages.ack, ACK),
        route("POST", "/queues/{queue}/messages/{messageId}/nack", messages.nack, NACK),
        route("POST", "/queues/{queue}/messages/batch", batches.send, SEND_BATCH),
        route("POST", "/queues/{queue}/messages/receive", batches.receive, RECEIVE_BATCH),
        route("POST", "/queues/{queue}/messages/ack", batches.ack, ACK_BATCH),
        route("POST", "/queues/{queue}/messages/nack", batches.nack, NACK_BATCH),
        route("POST", "/queues/{queue}/messages/extend", batches.extend, EXTEND_BATCH),
        route("POST", "/queues/{queue}/messages/release", batches.release, RELEASE_BATCH),
        route("GET", "/queues", queues.list, LIST_QUEUES),
        route("GET", "/queues/{queue}", queues.show, SHOW_QUEUE),
        route("GET", "/queues/{queue}/messages/{messageId}", queues.message, SHOW_MESSAGE),
        route("GET", "/queues/{queue}/peek", queues.peek, PEEK),
    ]
