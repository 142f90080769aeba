"""Message move tasks: redrives of the workbench, under the names of SQS.

The handle of a task is its id. A task of the admin UI is listed, too; one that deletes is not.
"""

from collections.abc import Callable

import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.sqs_api.caller import ANY_SCOPE, SqsCaller
from forq_trio.http.sqs_api.checks import in_range
from forq_trio.http.sqs_api.details import queue_in_house
from forq_trio.http.sqs_api.errors import (
    INVALID_PARAMETER,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_OPERATION,
    SqsError,
    UnknownQueue,
    missing,
)
from forq_trio.http.sqs_api.names import SqsQueue, queue_of_arn
from forq_trio.http.sqs_api.shapes import (
    CancelMoveTaskRequest,
    ListMoveTasksRequest,
    MoveTask,
    MoveTaskCancelled,
    MoveTasksAnswer,
    MoveTaskStarted,
    StartMoveTaskRequest,
)
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.dead_letters.redrives import RedriveTask
from forq_trio.model.errors import RedriveNotFound

_TASKS_MAX = 10
_STATUS = {
    "running": "RUNNING",
    "paused": "RUNNING",
    "done": "COMPLETED",
    "cancelled": "CANCELLED",
    "failed": "FAILED",
}


class SqsMoves:
    """The operations that move dead letters back."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._starting: set[str] = set()  # queues whose task is not stored yet

    async def start(self, caller: SqsCaller, asked: StartMoveTaskRequest) -> MoveTaskStarted:
        source = self._source(caller, asked.source_arn)
        if not self._broker.known.takes_dead_letters(source.house_name):
            raise SqsError(INVALID_PARAMETER, "Source queue must be configured as a Dead Letter Queue.")
        target = None
        if asked.destination_arn:
            target = self._queue(caller, asked.destination_arn, "DestinationArn", Scope.PRODUCE)
        rate = asked.max_number_of_messages_per_second
        if rate is not None:
            in_range("MaxNumberOfMessagesPerSecond", rate, 1, limits.SQS_RATE_MAX, rate)
        name = source.house_name
        if name in self._starting or any(not task.ended for task in self._tasks(source)):
            raise SqsError(
                UNSUPPORTED_OPERATION,
                "There is already a task running. Only one active task is allowed for a source queue arn at a given"
                " time.",
            )
        self._starting.add(name)
        try:
            task = await self._broker.redrive_tasks.start(
                name,
                target=None if target is None else target.house_name,
                rate_per_second=rate,
                started_by=caller.request.principal.key.name or None,
            )
        finally:
            self._starting.discard(name)
        return MoveTaskStarted(task.id)

    async def cancel(self, caller: SqsCaller, asked: CancelMoveTaskRequest) -> MoveTaskCancelled:
        if not asked.task_handle:
            raise missing("TaskHandle")
        task = next((each for each in self._broker.redrive_tasks.all() if each.id == asked.task_handle), None)
        source = (
            None if task is None else queue_in_house(self._broker, task.queue, caller.region, caller.account)
        )
        may = source is not None and caller.may(source, Scope.REDRIVE)
        if task is None or not may or not _is_move(task) or task.ended:
            raise _no_such_task()
        try:
            ended = await self._broker.redrive_tasks.cancel(task.id)
        except RedriveNotFound:
            raise _no_such_task() from None
        return MoveTaskCancelled(ended.moved)

    async def tasks(self, caller: SqsCaller, asked: ListMoveTasksRequest) -> MoveTasksAnswer:
        await trio.lowlevel.checkpoint()
        source = self._source(caller, asked.source_arn)
        most = in_range("MaxResults", asked.max_results, 1, _TASKS_MAX, 1)

        def arn_of(house_name: str) -> str | None:
            found = queue_in_house(self._broker, house_name, caller.region, caller.account)
            return None if found is None or not caller.may(found, Scope.REDRIVE, *ANY_SCOPE) else found.arn

        return MoveTasksAnswer([_view(task, source, arn_of) for task in self._tasks(source)[:most]])

    def _tasks(self, source: SqsQueue) -> list[RedriveTask]:
        """The tasks that move messages of this queue, the latest first."""
        found = self._broker.redrive_tasks.all(source.house_name)
        return [task for task in found if _is_move(task)]

    def _source(self, caller: SqsCaller, arn: str | None) -> SqsQueue:
        return self._queue(caller, arn, "SourceArn", Scope.REDRIVE)

    def _queue(self, caller: SqsCaller, arn: str | None, parameter: str, scope: Scope) -> SqsQueue:
        if not arn:
            raise missing(parameter)
        queue = queue_of_arn(arn, caller.account)
        if queue is not None:
            caller.check(queue, scope)
        if (
            queue is None
            or queue.region != caller.region
            or not self._broker.known.has_queue(queue.house_name)
        ):
            text = f"The resource that you specified for the {parameter} parameter doesn't exist."
            raise UnknownQueue(RESOURCE_NOT_FOUND, text)
        return queue


def _is_move(task: RedriveTask) -> bool:
    """Whether a task is one of SQS: it moves messages, and does not only count them."""
    return task.action == "redrive" and not task.dry_run


def _no_such_task() -> SqsError:
    return SqsError(RESOURCE_NOT_FOUND, "Task does not exist.")


def _view(task: RedriveTask, source: SqsQueue, arn_of: Callable[[str], str | None]) -> MoveTask:
    return MoveTask(
        status=_STATUS[task.state],
        source_arn=source.arn,
        started_timestamp=task.started_at,
        task_handle=None if task.ended else task.id,
        destination_arn=None if task.target is None else arn_of(task.target),
        per_second=task.rate_per_second,
        moved=task.moved,
        to_move=task.total,
        failure_reason=task.error,
    )
