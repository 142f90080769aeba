"""One task: the content of its message, and its run in a thread of a worker, with the signals of Django."""

from datetime import UTC, datetime
from traceback import format_exception
from typing import Any

from anyio import from_thread
from django.conf import settings
from django.db import close_old_connections
from django.utils import timezone
from msgspec import Struct

from forq_trio.worker.app import Worker
from forq_trio.worker.django.api import (
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    signals,
    task_at,
)
from forq_trio.worker.handlers import Handler
from forq_trio.worker.jobs import Job, is_last


class TaskCall(Struct, frozen=True):
    """A call of a task, as the content of a message."""

    task: str  # its path, "shop.tasks.greet"
    id: str  # of the result that `enqueue` has returned
    args: list[Any]  # values of JSON
    kwargs: dict[str, Any]  # values of JSON


class TaskRunner:
    """Runs the tasks of one queue."""

    def __init__(self, backend: Any, queue_name: str, worker: Worker) -> None:
        self._backend = backend  # a ForqBackend
        self._queue_name = queue_name  # as Django calls it, without the prefix
        self._worker = worker

    def run(self, call: TaskCall, job: Job, handler: Handler[Any, ..., Any]) -> Any:
        """Run a task, with connections to databases as a request has them; returns what it returned, as JSON.

        Raises what the task raises, ImportError for a task that is not here, and TypeError for a result that JSON has
        not.
        """
        close_old_connections()
        try:
            return self._run(call, job, handler)
        finally:
            close_old_connections()

    def _run(self, call: TaskCall, job: Job, handler: Handler[Any, ..., Any]) -> Any:
        result = self._begun(call, job)
        self._tell(signals.task_started, result)
        context = (TaskContext(task_result=result),) if result.task.takes_context else ()
        try:
            value = normalize_json(result.task.call(*context, *result.args, **result.kwargs))
        except (Exception, SystemExit) as error:
            result.errors.append(_noted(error))
            if _is_final(error, job, handler):
                self._finish(result, status=TaskResultStatus.FAILED)
            raise
        self._finish(result, status=TaskResultStatus.SUCCESSFUL, _return_value=value)
        return value

    def _begun(self, call: TaskCall, job: Job) -> Any:
        """The result of a task that begins. Of the attempts before it only the number is known."""
        task = task_at(call.task).using(queue_name=self._queue_name, backend=self._backend.alias)
        now = timezone.now()
        return TaskResult(
            task=task,
            id=call.id,
            status=TaskResultStatus.RUNNING,
            enqueued_at=_moment(job.received_at),
            started_at=now,
            last_attempted_at=now,
            finished_at=None,
            args=call.args,
            kwargs=call.kwargs,
            backend=self._backend.alias,
            errors=[],
            worker_ids=[""] * (job.attempt - 1) + [self._worker.name],
        )

    def _finish(self, result: Any, **members: Any) -> None:
        change(result, finished_at=timezone.now(), **members)
        self._tell(signals.task_finished, result)

    def _tell(self, signal: Any, result: Any) -> None:
        """Send a signal. An error of its receiver is logged: it does not have the task run again."""
        signal.send_robust(type(self._backend), task_result=result)


def change(result: Any, **members: Any) -> None:
    """Change members of a TaskResult, which are frozen for its users."""
    for name, value in members.items():
        object.__setattr__(result, name, value)


def _noted(error: BaseException) -> Any:
    kind = type(error)
    return TaskError(
        exception_class_path=f"{kind.__module__}.{kind.__qualname__}",
        traceback="".join(format_exception(error)),
    )


def _is_final(error: BaseException, job: Job, handler: Handler[Any, ..., Any]) -> bool:
    """Whether a task is not tried again. False where only the queue bounds the attempts, and nobody may read that."""
    settlement = from_thread.run_sync(
        handler.settlement, error, job
    )  # which only the event loop's thread may call
    return settlement.what == "discard" or is_last(settlement, job)


def _moment(at_ms: int) -> datetime:
    """A time as `timezone.now` would have given it."""
    moment = datetime.fromtimestamp(at_ms / 1_000, UTC)
    if not settings.USE_TZ:
        moment = timezone.make_naive(moment)
    return moment
