"""Endpoints for workers: one reports, or ends; and who is there."""

from types import NoneType

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import Answer, Endpoint
from forq_trio.model.paths import PathParameter, declare_path
from forq_trio.model.workers import bodies

_TAG = "Workers"
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
    description="A worker reports at its start, and then every 5 seconds. The token needs the scope `consume` "
    "for each queue that it names. Nothing is stored: after a restart the server knows a worker from its next "
    "report on.",
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
    description="Only the key that reported it, and the server's secret, may forget it.",
    answers=(Answer(204, "The server does not know the worker, or no longer.", NoneType),),
)
LIST_WORKERS = Endpoint(
    "GET",
    "/workers",
    Scope.BROWSE,
    name="listWorkers",
    tag=_TAG,
    summary="The workers that are known",
    description="Silent ones are listed, too, until their leases have ended, and for at least a minute.",
    query=bodies.WorkersQuery,
    answers=(Answer(200, "What is known of them in queues that the key covers.", bodies.WorkerList),),
    errors=(errors.InvalidQueueName,),
)
