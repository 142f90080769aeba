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
    description="Forq's own members are content and processAfter. In a message with only these, unknown "
    "members are ignored; in one with any other member they are refused. A message with a known "
    "deduplicationId gets the same answer as any other.",
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
    description="The message is leased to this consumer for the lease time of the queue, which is 5 minutes "
    "unless its settings say otherwise. The answer comes as soon as there is a message.",
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
    description="Without a receipt it succeeds whether or not the message was there.",
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
    "after the fifth, unless the message or the settings of its queue say otherwise. Without a receipt it succeeds "
    "whether or not the message was there.",
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
    description="Each is validated alone: the valid ones are stored, all or none of them.",
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
    body=AckRequest,
    answers=_SETTLED,
    errors=(*SETTLE_ERRORS, *TABLE_ERRORS),
)
NACK_MESSAGES = Endpoint(
    "POST",
    "/queues/{queue}/messages/nack",
    Scope.CONSUME,
    name="nackMessages",
    tag="Consumer",
    summary="Give back messages that failed",
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
    description="They are not delivered again and do not become dead letters. The history, if it is on, stores "
    "them as discarded.",
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
    description="leaseMs counts from now; without it the lease time of the queue applies. 0 ends the lease at "
    "once, and the attempt counts.",
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
    description="They are ready again at their old positions, without counting the attempt.",
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
    query=PeekQuery,
    answers=(Answer(200, "The messages.", MessageList),),
    errors=(*READ_ERRORS, *TABLE_ERRORS),
)
