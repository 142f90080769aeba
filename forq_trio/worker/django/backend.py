"""The backend of Django's tasks that sends them to queues, and the Worker of each backend, which runs them.

Django makes a backend anew for each thread. Its Worker is made once for each process: it sends for all threads, and
opens what it needs at its first use, after the fork of a web server.
"""

import math
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

import django
from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db import connections, transaction
from django.utils import timezone
from msgspec import Struct

from forq_trio import outbox
from forq_trio.model import limits
from forq_trio.model.checks import check_message, check_producible
from forq_trio.model.clock import machine_ms
from forq_trio.model.messages.new_message import MessageOptions, NewMessage
from forq_trio.worker.app import Worker
from forq_trio.worker.django.api import BaseTaskBackend, TaskResult, TaskResultStatus, signals, task_backends
from forq_trio.worker.django.running import TaskCall, TaskRunner, change
from forq_trio.worker.handlers import Handler, WorkerSetupError
from forq_trio.worker.jobs import Job
from forq_trio.worker.opened import refuse_in_event_loop
from forq_trio.worker.payloads import Payload
from forq_trio.worker.send_options import SendOptions

TASK_OPTIONS = frozenset(
    {"concurrency", "dead", "lease", "on_unreadable", "retry", "timeout", "weight", "where"}
)
"""The options of `Worker.on` that HANDLER may have. Others have no effect: results of tasks are not stored, each call
is of one task, and tasks run in threads."""

_encode = Payload(TaskCall).encode
_workers: dict[str, Worker] = {}  # by the alias of their backend, as threads have made them in this process


class TaskOptions(Struct, frozen=True):
    """OPTIONS of a backend in the setting TASKS, there in upper case."""

    url: str | None = None  # of the queue, as for Worker
    secret: str | None = None  # as for Worker
    prefix: str = ""  # before the names of the queues
    database: str = "default"  # whose transaction decides whether a task is sent
    outbox: bool = False  # whether tasks are written into the outbox of that database
    handler: dict[str, Any] = {}  # options of Worker.on, those in TASK_OPTIONS, for each queue


class ForqBackend(BaseTaskBackend):  # type: ignore[misc]  # Django says no types
    """Sends tasks to the queues of QUEUES. OPTIONS: see `TaskOptions`."""

    supports_defer = True
    supports_async_task = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        try:
            self.given = TaskOptions(**{name.lower(): value for name, value in self.options.items()})
        except TypeError as problem:
            raise _wrong(alias, str(problem)) from None

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Send a task: when the transaction of the database commits, at once without one, with an outbox within it.

        Raises InvalidTask, TypeError for arguments that JSON has not, and what `check_message` raises, in the
        transaction; what `Worker.send_blocking` raises, also after the commit. Then the task is not sent. RuntimeError
        in an event loop.
        """
        refuse_in_event_loop("`aenqueue`")
        self.validate_task(task)
        result = _result(task, args, kwargs, self.alias)
        call = TaskCall(task.module_path, result.id, result.args, result.kwargs)
        queue, content = self.given.prefix + task.queue_name, _encode(call)
        check_producible(queue)
        check_message(NewMessage(content, **_options(task)), machine_ms())

        def send() -> None:
            worker_of(self.alias).send_blocking(queue, call, **_options_of_worker(task))
            self._note_sent(result)

        database = connections[self.given.database]
        if self.given.outbox:
            outbox.send(database, queue, content, **_options(task))
            self._note_sent(result)
        elif database.in_atomic_block or database.connection is not None:
            transaction.on_commit(send, using=self.given.database)
        else:
            send()  # to ask for a transaction would connect to the database
        return result

    def check(self, **given: Any) -> list[CheckMessage]:
        """What is wrong in TASKS, for `manage.py check`."""
        found = list(super().check(**given))
        try:
            worker_of(self.alias)
        except ImproperlyConfigured as problem:
            found.append(Error(str(problem), id="forq.E001"))
        return found

    def _note_sent(self, result: Any) -> None:
        change(result, enqueued_at=timezone.now())
        signals.task_enqueued.send(type(self), task_result=result)


def worker_of(alias: str = "default") -> Worker:
    """The Worker of a backend in this process: it sends its tasks, and runs those of its queues.

    It may have handlers, middleware and more of yours. Sets up Django, if nobody has. Raises ImproperlyConfigured.
    """
    if not apps.apps_ready:
        django.setup()
    found = _workers.get(alias)
    if found is None:
        backend = task_backends[alias]
        if not isinstance(backend, ForqBackend):
            raise ImproperlyConfigured(f"TASKS[{alias!r}] has another backend than ForqBackend")
        found = _workers.setdefault(alias, _made(backend))  # another thread may have made it meanwhile
    return found


def _made(backend: ForqBackend) -> Worker:
    """A Worker with a handler for each queue of a backend. Opens nothing."""
    given = backend.given
    for name in sorted(given.handler.keys() - TASK_OPTIONS):
        raise _wrong(backend.alias, f"HANDLER: {name} is no option for tasks")
    database = connections[given.database]
    relayed = database.settings_dict["NAME"] if given.outbox and database.vendor == "sqlite" else None
    worker = Worker(given.url, secret=given.secret, outbox=relayed)
    try:
        for name in sorted(backend.queues):
            _add_handler(worker, backend, name)
    except (TypeError, WorkerSetupError) as problem:
        # Without the place at its beginning, which is in our own files.
        raise _wrong(backend.alias, str(problem).rpartition("run_task: ")[2]) from None
    return worker


def _add_handler(worker: Worker, backend: ForqBackend, queue_name: str) -> None:
    runner = TaskRunner(backend, queue_name, worker)

    def run_task(call: TaskCall, job: Job) -> Any:
        return runner.run(call, job, handler)

    # Any, because the options are known when the settings are read.
    register: Any = worker.on(backend.given.prefix + queue_name, **backend.given.handler)
    handler: Handler[Any, ..., Any] = register(run_task)


def _result(task: Any, args: Any, kwargs: Any, alias: str) -> Any:
    """The result of a task that waits."""
    return TaskResult(
        task=task,
        id=uuid4().hex,
        status=TaskResultStatus.READY,
        enqueued_at=None,
        started_at=None,
        last_attempted_at=None,
        finished_at=None,
        args=args,
        kwargs=kwargs,
        backend=alias,
        errors=[],
        worker_ids=[],
    )


def _options(task: Any) -> MessageOptions:
    """The options of a task's message, as of now: a transaction may take a while.

    A delay does not depend on the clock of the server, which refuses a time that is past for it.
    """
    options: MessageOptions = {"priority": limits.PRIORITY_DEFAULT + task.priority}
    if task.run_after is not None:
        left_ms = math.ceil((task.run_after.timestamp() - time.time()) * 1_000)
        if left_ms > 0:
            options["delay_ms"] = left_ms
    return options


def _options_of_worker(task: Any) -> SendOptions:
    """The same as a Worker takes them."""
    options = _options(task)
    given: SendOptions = {"priority": options["priority"]}
    delay_ms = options.get("delay_ms")
    if delay_ms is not None:
        given["delay"] = timedelta(milliseconds=delay_ms)
    return given


def _wrong(alias: str, problem: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"TASKS[{alias!r}]: {problem}")


def _forget_workers(*, setting: str, **given: Any) -> None:
    """As Django makes new backends, where a test sets TASKS."""
    if setting == "TASKS":
        _workers.clear()


setting_changed.connect(_forget_workers)
