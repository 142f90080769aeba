"""Endpoints for messages: send, receive, settle, show, peek."""

from types import NoneType

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import (
    READ_ERRORS,
    SETTLE_ERRORS,
    STORE_ERRORS,
    TABLE_ERRORS,
    WRITE_ERRORS,
    Answer,
    Endpoint,
    Header,
    declare_topic,
)
from forq_trio.model.error_answers import ANSWER_HEADER, FULL, RECEIPT_HEADER
from forq_trio.model.messages.bodies import (
    MessageList,
    NewMessages,
    NextMessage,
    NextQuery,
    PeekQuery,
    ReceivedMessage,
    ReceivedMessages,
    ReceiveRequest,
    SendResults,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.receipts import (
    AckRequest,
    DiscardRequest,
    ExtendRequest,
    NackRequest,
    ReceiptResults,
    ReleaseRequest,
)
from forq_trio.model.messages.types import MessageInfo

declare_topic(
    "Producer",
    "Messages are sent, one or many, and cancelled. A queue exists from its first message or setting on.",
)
declare_topic(
    "Consumer",
    "A received message is leased to its consumer, who settles it by its receipt: it acknowledges the "
    "message, gives it back after a failed attempt or unprocessed, discards it, or extends the lease.",
)
_RECEIPT = Header(
    RECEIPT_HEADER,
    "The receipt the message came with. Only the receipt of the latest delivery succeeds; without "
    "one the id alone decides, unless the server demands receipts.",
    {"type": "string"},
)
_ANSWER = Header(
    ANSWER_HEADER,
    "`full`: all members of a message and of an error, not Forq's alone.",
    {"type": "string", "enum": [FULL]},
)
_SETTLED = (Answer(200, "One result per receipt, in their order.", ReceiptResults),)
SEND_MESSAGE = Endpoint(
    "POST",
    "/queues/{queue}/messages",
    Scope.PRODUCE,
    name="sendMessage",
    tag="Producer",
    summary="Send a message",
    description="It is stored durably before the answer (see FORQ_DURABILITY). Forq's own members are `content` and "
    "`processAfter`. In a message with only these, unknown members are ignored; in one with any other "
    "member they are refused. The queue's settings apply where a member is left out; "
    "docs/queues.md#options-of-a-message explains each. `processAfter` lies at most 10 seconds in the "
    "past and 366 days ahead.\n\n"
    "A message with a known `deduplicationId` gets the same answer as any other, so a sender may repeat a "
    "send until it has an answer. Ids are separate for each queue.\n\n"
    "A message expires FORQ_QUEUE_TTL_HOURS (24) hours after it is due, unless it or its queue says "
    "otherwise, and then moves to the dead-letter queue. A send to a full queue "
    "(docs/queues.md#full-queues) is answered 503 `forq.queue_full`. Nobody can send to a dead-letter "
    "queue.",
    body=NewMessage,
    headers=(_ANSWER,),
    answers=(Answer(204, "The message is stored durably.", NoneType),),
    errors=(
        errors.ProduceToDeadLetterQueue,
        errors.TooManyQueues,
        errors.QueueFull,
        errors.InvalidPayload,
        *STORE_ERRORS,
        *TABLE_ERRORS,
    ),
)
RECEIVE_MESSAGE = Endpoint(
    "GET",
    "/queues/{queue}/messages",
    Scope.CONSUME,
    checks_scope=False,
    head=False,
    name="receiveMessage",
    tag="Consumer",
    summary="Receive the next message, waiting up to 30 seconds",
    description="The message is leased to this consumer for the lease time of the queue, 5 minutes by default: no "
    "other consumer gets it meanwhile. Its `receipt` is needed to settle it. If the lease ends first, the "
    "message is delivered again; the fifth delivery is the last by default. Higher priorities come first; "
    "within a priority messages come in order of arrival, and groups are served round-robin "
    "(docs/queues.md#order-and-fairness).\n\n"
    "Waiting consumers are served first come, first served, as soon as a message is ready. If a consumer "
    "disconnects before it has its answer, the message is given back, and the attempt is not counted. "
    "There is no HEAD here.\n\n"
    "A client that shuts its sending side behind its request, as `nc -N` and some proxies do, counts as "
    "disconnected, because a client that died looks the same: it gets no message, and no answer if it "
    "would wait. Leave the connection open until the answer is there. The server reads up to 64 KiB of "
    "requests that a client pipelines behind a waiting one; more than that ends the wait.\n\n"
    "A peek needs the scope `browse` instead. It does not change `attempts`.",
    query=NextQuery,
    headers=(_ANSWER,),
    answers=(
        Answer(200, "A message.", NextMessage, full=ReceivedMessage),
        Answer(204, "No message came within the wait.", NoneType),
    ),
    errors=(*WRITE_ERRORS, *READ_ERRORS, *TABLE_ERRORS),
)
ACK_MESSAGE = Endpoint(
    "POST",
    "/queues/{queue}/messages/{messageId}/ack",
    Scope.CONSUME,
    name="ackMessage",
    tag="Consumer",
    summary="Acknowledge a message, which removes it",
    description="With the header X-Forq-Receipt only the current receipt succeeds; others are answered 404 "
    "`not_found.message`. Without it the id decides, and the answer is 204 whether or not the message "
    "exists, unless the server requires receipts (FORQ_REQUIRE_RECEIPT=true). A body is ignored.",
    headers=(_RECEIPT, _ANSWER),
    answers=(Answer(204, "The message is gone.", NoneType),),
    errors=(
        errors.MalformedReceipt,
        errors.ReceiptMissing,
        errors.MessageNotFound,
        *SETTLE_ERRORS,
        *TABLE_ERRORS,
    ),
)
NACK_MESSAGE = Endpoint(
    "POST",
    "/queues/{queue}/messages/{messageId}/nack",
    Scope.CONSUME,
    name="nackMessage",
    tag="Consumer",
    summary="Give back a message that failed",
    description="It is ready again after 1, 5, 15, 30 or 60 seconds by attempt, and moves to the dead-letter queue "
    "after the fifth, unless the message or the settings of its queue say otherwise; in a dead-letter "
    "queue it is deleted then. Receipts as for an ack of one message. A body is ignored.",
    headers=(_RECEIPT, _ANSWER),
    answers=(Answer(204, "The message is given back, or has failed.", NoneType),),
    errors=(
        errors.MalformedReceipt,
        errors.ReceiptMissing,
        errors.MessageNotFound,
        *SETTLE_ERRORS,
        *TABLE_ERRORS,
    ),
)
SEND_MESSAGES = Endpoint(
    "POST",
    "/queues/{queue}/messages/batch",
    Scope.PRODUCE,
    name="sendMessages",
    tag="Producer",
    summary="Send up to 1,000 messages in one commit",
    description="At most 4 MiB of content and 8 MiB of JSON in all. Each message is validated alone: the valid ones "
    "are stored in order, all or none of them; the others have a result with `code`, `field` and "
    "`message`. So has one with a text that the server's database cannot store "
    "(docs/postgres.md#what-is-different), and one with a dead-letter queue that the token may not make. "
    "An empty list has no results.\n\n"
    "The whole request is refused with 400 for too many messages, with 413 for too many bytes, with 403 "
    "for a dead-letter queue to which the token may not send, and with 503 if the queue cannot take all "
    "of them.",
    body=NewMessages,
    answers=(Answer(200, "One result per message, in their order.", SendResults),),
    errors=(
        errors.ProduceToDeadLetterQueue,
        errors.TooManyQueues,
        errors.QueueFull,
        errors.InvalidPayload,
        *STORE_ERRORS,
        *TABLE_ERRORS,
    ),
)
RECEIVE_MESSAGES = Endpoint(
    "POST",
    "/queues/{queue}/messages/receive",
    Scope.CONSUME,
    checks_scope=False,
    name="receiveMessages",
    tag="Consumer",
    summary="Receive up to 100 messages, waiting for the first",
    description="Always 200, with an empty list if none came in time. There may be fewer than `max` though more are "
    "ready: a claim stops at about 4 MiB of messages. Leases, order, waits, disconnects and peeks are as "
    "for a receive of one message.",
    body=ReceiveRequest,
    answers=(Answer(200, "The messages; an empty list if none came within the wait.", ReceivedMessages),),
    errors=(*WRITE_ERRORS, *READ_ERRORS, *TABLE_ERRORS),
)
ACK_MESSAGES = Endpoint(
    "POST",
    "/queues/{queue}/messages/ack",
    Scope.CONSUME,
    name="ackMessages",
    tag="Consumer",
    summary="Acknowledge messages, which removes them",
    description="A receipt is opaque, has the form of a UUID, and names one delivery of a message; the next delivery "
    "makes it void. One that is refused does not affect the others: its `code` is `not_found.message` if "
    "it is not current, or `bad_request.receipt.invalid` if it is no receipt.\n\n"
    "`result` is stored with each of these messages, also while the history is off, for `GET …/result` "
    "(docs/results.md).",
    body=AckRequest,
    answers=_SETTLED,
    errors=(errors.OutOfRange.about("result"), *SETTLE_ERRORS, *TABLE_ERRORS),
)
NACK_MESSAGES = Endpoint(
    "POST",
    "/queues/{queue}/messages/nack",
    Scope.CONSUME,
    name="nackMessages",
    tag="Consumer",
    summary="Give back messages that failed",
    description="After the last attempt a message moves to the dead-letter queue, or is deleted if it is in one; then "
    "its result has `failed`. `maxAttempts` becomes the messages' own bound, as if they had been sent with it. Results "
    "as for an ack.",
    body=NackRequest,
    answers=_SETTLED,
    errors=(*SETTLE_ERRORS, *TABLE_ERRORS),
)
DISCARD_MESSAGES = Endpoint(
    "POST",
    "/queues/{queue}/messages/discard",
    Scope.CONSUME,
    name="discardMessages",
    tag="Consumer",
    summary="End messages that no attempt can process",
    description="They are not delivered again and do not become dead letters. The history, if it is on, stores them "
    "with the outcome `discarded`, the reason `consumer`, and the given `reason` as `lastError` "
    "(docs/history.md). Results as for an ack. The metric "
    '`forq_messages_cleanup_total{reason="consumer"}` counts them.',
    body=DiscardRequest,
    answers=_SETTLED,
    errors=(*SETTLE_ERRORS, *TABLE_ERRORS),
)
EXTEND_LEASES = Endpoint(
    "POST",
    "/queues/{queue}/messages/extend",
    Scope.CONSUME,
    name="extendLeases",
    tag="Consumer",
    summary="Extend the leases of messages",
    description="0 ends the leases at once, and the attempt counts. Results as for an ack; successful ones have the "
    "new `leaseUntil`.",
    body=ExtendRequest,
    answers=_SETTLED,
    errors=(*SETTLE_ERRORS, *TABLE_ERRORS),
)
RELEASE_MESSAGES = Endpoint(
    "POST",
    "/queues/{queue}/messages/release",
    Scope.CONSUME,
    name="releaseMessages",
    tag="Consumer",
    summary="Give back messages unprocessed",
    description="They keep their place in the order, and the attempt is not counted. Results as for an ack.",
    body=ReleaseRequest,
    answers=_SETTLED,
    errors=(*SETTLE_ERRORS, *TABLE_ERRORS),
)
SHOW_MESSAGE = Endpoint(
    "GET",
    "/queues/{queue}/messages/{messageId}",
    Scope.BROWSE,
    name="showMessage",
    tag="Queues",
    summary="Show a message without changing it",
    description="Whatever its status.",
    answers=(Answer(200, "The message.", MessageInfo),),
    errors=(errors.MessageNotFound, *READ_ERRORS, *TABLE_ERRORS),
)
PEEK_MESSAGES = Endpoint(
    "GET",
    "/queues/{queue}/peek",
    Scope.BROWSE,
    name="peekMessages",
    tag="Queues",
    summary="Peek at the next ready messages",
    description="In claim order, or random ones. A page ends at 4 MiB of content, attributes and reasons, but has at "
    "least one message. A peek does not wait; a receive with `peek` does.",
    query=PeekQuery,
    answers=(Answer(200, "The messages.", MessageList),),
    errors=(*READ_ERRORS, *TABLE_ERRORS),
)
