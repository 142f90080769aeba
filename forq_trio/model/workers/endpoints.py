"""Endpoints for workers: one reports, or ends; and who is there."""

from types import NoneType

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import Answer, Endpoint, declare_topic
from forq_trio.model.paths import PathParameter, declare_path
from forq_trio.model.workers import bodies, withdrawn

_TAG = "Workers"
declare_topic(
    "Workers",
    "A worker reports what it does, so that pages, `forq workers` and metrics can show who is there. "
    "`forq_trio.worker` does this by itself.",
)
declare_path(
    workerId=PathParameter(
        "The id that the worker made at its start.",
        {"type": "string", "format": "uuid"},
        errors.InvalidRequest,
    )
)
REPORT_WORKER = Endpoint(
    "PUT",
    "/workers/{workerId}",
    Scope.CONSUME,
    name="reportWorker",
    tag=_TAG,
    summary="Report what a worker does",
    description="A worker reports at its start, and then every 5 seconds, at most 512 KiB. `workerId` is a UUID that "
    "it made at its start. The token needs the scope `consume` for each queue that it names. Nothing is "
    "stored: after a restart the server knows a worker from its next report on. Of a report the server "
    "keeps the oldest 500 messages in process. 403 `forbidden` if another key reported this id. At most "
    "2,000 workers are known, and 500 of one token: 409 `conflict.too_many_workers`.",
    body=bodies.WorkerState,
    answers=(Answer(204, "The server has the report.", NoneType),),
    errors=(errors.TooManyWorkers, errors.InvalidQueueName, errors.MalformedMessageId, errors.OutOfRange),
)
FORGET_WORKER = Endpoint(
    "DELETE",
    "/workers/{workerId}",
    Scope.CONSUME,
    name="forgetWorker",
    tag=_TAG,
    summary="Forget a worker that ends",
    description="204 also if it was not known. Only the key that reported it, and the server's secret, may forget it: "
    "403 `forbidden`.",
    answers=(Answer(204, "The server does not know the worker, or no longer.", NoneType),),
)
LIST_WITHDRAWN = Endpoint(
    "POST",
    "/withdrawn",
    Scope.CONSUME,
    name="listWithdrawn",
    tag=_TAG,
    summary="Wait for messages that were removed while a consumer had them",
    description="`how` it was removed: cancelled; or deleted, also by a purge of its queue or a drop of its key. A "
    "message that a consumer has is not evicted, and does not expire. A worker asks while it has messages in process, "
    "and cancels the handlers of those that it is told of. The token needs the scope `consume` for each queue. "
    "`messageId` is null if any message of that queue may be one: many were removed at once, or the server does not "
    "know all since `after`, for example because it began later. Then an extension of the leases tells. Nothing is "
    "stored: a consumer that does not ask learns it when it extends or settles.",
    body=withdrawn.WithdrawnRequest,
    answers=(Answer(200, "Those of these queues since `after`.", withdrawn.WithdrawnMessages),),
    errors=(errors.InvalidQueueName, errors.OutOfRange, errors.Overloaded, errors.Stopping),
)
LIST_WORKERS = Endpoint(
    "GET",
    "/workers",
    Scope.BROWSE,
    name="listWorkers",
    tag=_TAG,
    summary="The workers that are known",
    description="A worker is silent if nothing was heard from it for 15 seconds. Silent ones are listed, too, until "
    "nothing was heard for a minute and the leases that they named have ended.",
    query=bodies.WorkersQuery,
    answers=(Answer(200, "What is known of them in queues that the key covers.", bodies.WorkerList),),
    errors=(errors.InvalidQueueName,),
)
