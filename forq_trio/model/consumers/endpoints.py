"""Endpoints for consumers of pipelines."""

from types import NoneType

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.consumers import bodies
from forq_trio.model.endpoint import (
    NDJSON,
    READ_ERRORS,
    STORE_ERRORS,
    WRITE_ERRORS,
    Answer,
    Endpoint,
    Header,
    declare_topic,
)
from forq_trio.model.error_answers import NEXT_HEADER
from forq_trio.model.messages.export import ExportedMessage
from forq_trio.model.paths import PathParameter, declare_path, name_schema

_TAG = "Consumers of pipelines"
declare_topic(
    "Consumers of pipelines",
    "A *consumer* reads one queue for a pipeline, in numbered leases of many messages; "
    "docs/pipelines.md explains them. A lease is stored in pages when it is made, "
    "and its pages can be read as often as needed.",
)
declare_path(
    consumer=PathParameter(
        "The consumer's name: 1 to 64 characters of A-Z a-z 0-9 . _ -, but not . or .. alone.",
        name_schema("A-Za-z0-9._-", 64),
        errors.OutOfRange,
    ),
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
    description="Those of the queues that the key covers.",
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
    description="The body may be left out. Each open increases the `generation` by one; from then on leases and "
    "acknowledgements of older generations are refused with 409 `forq.consumer_fenced`. No generation or "
    "lease number of a name is used twice, even after the consumer was deleted: the next lease is always "
    "`leased` + 1. Shares bound how many consumers there may be (docs/access.md#shares): 409 "
    "`conflict.too_many_consumers`.",
    body=bodies.OpenConsumerRequest,
    needs_body=False,
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
    description="404 `forq.consumer_not_found` without one.",
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
    "is refused; 409 `forq.consumer_fenced` if the consumer is opened again before it is deleted. A later "
    "consumer of this name continues the numbers.",
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
    "about a second and answers the lease so far: call again with the same body until the answer is "
    "`complete`. The same number always has the same messages. A lease is complete when it has "
    "`maxMessages` or `maxBytes`, or when no more messages are ready. If none was ready at all, the "
    "answer is complete without messages, and no lease is made: the next call may make it.\n\n"
    "With `ahead` a program has its next lease made while it works on one. Where less than a page more is "
    "ready and it is not complete, the answer is `waiting`: call no more then. A later call without "
    "`ahead` adds what is ready by then, and completes it.\n\n"
    "`madeAt` is when the last page of the lease was made. A server that was restored from a backup uses "
    "numbers again, at another time: results that are stored under the consumer's name, number and "
    "`madeAt` never overwrite others.\n\n"
    "409 `forq.lease_out_of_order` for any number but the next, 409 `forq.other_lease` for another "
    "`acknowledgeMadeAt`, 410 `forq.lease_gone` for a lease that was given back or can no longer be read, "
    "503 `forq.leases_full` when unacknowledged leases of all consumers have 16 GiB, or those of the "
    "consumers that one key made 8 GiB (docs/access.md#shares). Pages of acknowledged leases are deleted "
    "before that, first those of the consumer that has been idle for longest.",
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
    description="In order, fewer pages than asked for if they have more than 4 MiB. A lease can be read any number of "
    "times, even after its acknowledgement, until three later leases are acknowledged (fewer if they have "
    "more than 256 MiB), the consumer is not used for `idleSeconds`, or the space is needed. `priority`, "
    "`group` and `attributes` are left out where they are the defaults. With another `madeAt` than the "
    "lease's: 409 `forq.other_lease`.",
    query=bodies.LeasePageQuery,
    answers=(
        Answer(
            200,
            "A line of JSON for each message.",
            ExportedMessage,
            NDJSON,
            headers=(
                Header(NEXT_HEADER, "The next `page`; absent at the end.", {"type": "integer", "minimum": 0}),
            ),
        ),
    ),
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
    description="The open lease, and the one that was made ahead of it if `number` is that one's. Answers with the "
    "consumer when all are removed, or after about a second: call again while `acknowledged` is below the "
    "number. Acknowledging a lease twice changes nothing. 410 `forq.lease_gone` for a lease that was "
    "given back.\n\n"
    "Give `madeAt` where the number was stored: a server that was restored from a backup, or another one, "
    "may have a lease of that number with other messages. These are then not removed: 409 "
    "`forq.other_lease`.",
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
    description="And of one that was made ahead. From then on they can neither be read nor acknowledged: 410 "
    "`forq.lease_gone`. Answers with the consumer when all are given back, or after about a second: call "
    "again while `settling` is true. If a lease was open, the `generation` grows, and the consumer has to "
    "be opened again. An acknowledgement that has begun is finished instead.",
    takes_nothing=True,
    answers=_CONSUMER,
    errors=(errors.ConsumerNotFound, *WRITE_ERRORS),
)
