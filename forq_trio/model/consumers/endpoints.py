"""Endpoints for consumers of pipelines."""

from types import NoneType

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.consumers import bodies
from forq_trio.model.endpoint import NDJSON, READ_ERRORS, STORE_ERRORS, WRITE_ERRORS, Answer, Endpoint
from forq_trio.model.messages.export import ExportedMessage
from forq_trio.model.paths import PathParameter, declare_path, name_schema

_TAG = "Consumers of pipelines"
declare_path(
    consumer=PathParameter("The consumer's name.", name_schema("A-Za-z0-9._-", 64), errors.OutOfRange),
    number=PathParameter("The number of a lease.", {"type": "integer", "minimum": 1}, errors.OutOfRange),
)
_CONSUMER = (Answer(200, "The consumer.", bodies.ConsumerInfo),)
LIST_ALL_CONSUMERS = Endpoint(
    "GET",
    "/consumers",
    Scope.BROWSE,
    name="listAllConsumers",
    tag=_TAG,
    summary="The consumers of all queues, page by page",
    query=bodies.ConsumersQuery,
    answers=(
        Answer(200, "Those of the queues that the key covers, by queue and name.", bodies.ConsumerList),
    ),
)
LIST_CONSUMERS = Endpoint(
    "GET",
    "/queues/{queue}/consumers",
    Scope.BROWSE,
    name="listConsumers",
    tag=_TAG,
    summary="The consumers of a queue",
    answers=(Answer(200, "The consumers by name.", bodies.ConsumerList),),
)
OPEN_CONSUMER = Endpoint(
    "PUT",
    "/queues/{queue}/consumers/{consumer}",
    Scope.CONSUME,
    name="openConsumer",
    tag=_TAG,
    summary="Open a consumer, and create it if it does not exist",
    description="Its generation grows; from then on older generations are refused.",
    body=bodies.OpenConsumerRequest,
    answers=_CONSUMER,
    errors=(errors.TooManyConsumers, errors.QueueBound, *WRITE_ERRORS),
)
SHOW_CONSUMER = Endpoint(
    "GET",
    "/queues/{queue}/consumers/{consumer}",
    Scope.BROWSE,
    name="showConsumer",
    tag=_TAG,
    summary="How far a consumer is",
    answers=_CONSUMER,
    errors=(errors.ConsumerNotFound,),
)
DELETE_CONSUMER = Endpoint(
    "DELETE",
    "/queues/{queue}/consumers/{consumer}",
    Scope.CONSUME,
    name="deleteConsumer",
    tag=_TAG,
    summary="Give back what a consumer has leased, and forget it",
    description="Works for about a second; call again while the answer is 202. From the first call on its generation "
    "is refused.",
    answers=(
        Answer(204, "It is forgotten.", NoneType),
        Answer(202, "There is more to give back: call again.", NoneType),
    ),
    errors=(errors.ConsumerNotFound, errors.ConsumerFenced, *WRITE_ERRORS),
)
LEASE_MESSAGES = Endpoint(
    "POST",
    "/queues/{queue}/consumers/{consumer}/lease",
    Scope.CONSUME,
    name="leaseMessages",
    tag=_TAG,
    summary="Make a lease of many messages, or go on with it",
    description="Acknowledges the leases up to `acknowledge` first, and waits up to `waitMs` for a message. Works for "
    "about a second; call again with the same body until the answer is complete. The same number always has the same "
    "messages.",
    body=bodies.LeaseRequest,
    answers=(Answer(200, "How far the lease is.", bodies.ConsumerLease),),
    errors=(
        errors.ConsumerNotFound,
        errors.ConsumerFenced,
        errors.OtherLease,
        errors.LeaseOutOfOrder,
        errors.LeaseGone,
        errors.LeasesFull,
        *STORE_ERRORS,
    ),
)
READ_LEASE = Endpoint(
    "GET",
    "/queues/{queue}/consumers/{consumer}/leases/{number}",
    Scope.CONSUME,
    name="readLease",
    tag=_TAG,
    summary="Read messages of a lease",
    description="It can be read any number of times, until three later leases are acknowledged. The header "
    "`X-Forq-Next` is the next page; it is absent at the end.",
    query=bodies.LeasePageQuery,
    answers=(Answer(200, "A line of JSON for each message.", ExportedMessage, NDJSON),),
    errors=(
        errors.ConsumerNotFound,
        errors.OtherLease,
        errors.LeaseOutOfOrder,
        errors.LeaseGone,
        *READ_ERRORS,
    ),
)
ACKNOWLEDGE_LEASE = Endpoint(
    "POST",
    "/queues/{queue}/consumers/{consumer}/acknowledge",
    Scope.CONSUME,
    name="acknowledgeLease",
    tag=_TAG,
    summary="Remove the messages of a lease",
    description="Nothing is done for a lease that was acknowledged before, or that was made at another time "
    "than `madeAt`. Works for about a second; call again while `acknowledged` is below the number.",
    body=bodies.AcknowledgeLease,
    answers=_CONSUMER,
    errors=(
        errors.ConsumerNotFound,
        errors.ConsumerFenced,
        errors.OtherLease,
        errors.LeaseOutOfOrder,
        errors.LeaseGone,
        *WRITE_ERRORS,
    ),
)
RELEASE_CONSUMER = Endpoint(
    "POST",
    "/queues/{queue}/consumers/{consumer}/release",
    Scope.CONSUME,
    name="releaseConsumer",
    tag=_TAG,
    summary="Give back the messages of the open lease, without counting the attempt",
    description="Works for about a second; call again while `settling` is true. If a lease was open, the "
    "generation grows.",
    takes_nothing=True,
    answers=_CONSUMER,
    errors=(errors.ConsumerNotFound, *WRITE_ERRORS),
)
