"""Django's tasks in a worker: their signals, attempts, errors and connections to databases."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import anyio
import pytest

from forq_trio.worker import Job
from support.real_server import SECRET

from .conftest import Sent, SetTasks


def run_all() -> None:
    """Run all tasks that are due, in a worker as `forq work` has it."""
    from forq_trio.worker.django import app

    app.run(stop_when_empty=True)


class Told:
    """What Django's signals have said about tasks."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.said: list[tuple[str, str]] = []  # the signal, and the task's status

    def begun(self, *, task_result: Any, **given: Any) -> None:
        self.said.append(("started", str(task_result.status)))

    def ended(self, *, task_result: Any, **given: Any) -> None:
        self.said.append(("finished", str(task_result.status)))
        self.results.append(task_result)


@pytest.fixture
def told(shop: Any) -> Iterator[Told]:
    from forq_trio.worker.django.api import signals

    told = Told()
    signals.task_started.connect(told.begun)
    signals.task_finished.connect(told.ended)
    yield told
    signals.task_started.disconnect(told.begun)
    signals.task_finished.disconnect(told.ended)


def test_a_task_runs_and_its_signals_say_so(shop: Any, told: Told) -> None:
    sent = shop.greet.enqueue("anna", loud=True)
    run_all()
    assert shop.seen == [("greet", "anna", True)]
    assert told.said == [("started", "RUNNING"), ("finished", "SUCCESSFUL")]
    (result,) = told.results
    assert (result.id, result.return_value, result.attempts) == (sent.id, "hello anna", 1)
    assert result.task == shop.greet
    assert result.enqueued_at <= result.started_at <= result.finished_at


def test_a_coroutine_and_a_task_with_context_run_too(shop: Any, told: Told) -> None:
    shop.greet_async.enqueue("bela")
    sent = shop.write.enqueue("cleo")
    run_all()
    assert sorted(shop.seen, key=str) == [("async", "bela"), (1, sent.id, "cleo")]
    assert [status for signal, status in told.said if signal == "finished"] == ["SUCCESSFUL"] * 2


def test_a_task_that_fails_is_tried_again_and_its_last_error_is_told(
    shop: Any, told: Told, sent: Sent, set_tasks: SetTasks, url: str
) -> None:
    set_tasks(URL=url, SECRET=SECRET, HANDLER={"retry": [0]})
    waiting = shop.write.enqueue("nobody")
    run_all()
    assert shop.seen == [(1, waiting.id, "nobody"), (2, waiting.id, "nobody")]
    assert told.said == [("started", "RUNNING"), ("started", "RUNNING"), ("finished", "FAILED")]
    (result,) = told.results
    (error,) = result.errors
    assert error.exception_class is ValueError
    assert error.traceback.endswith("ValueError: no address\n")
    (dead,) = sent.client.search_dead_letters("letters-dlq").messages
    assert dead.last_error == "ValueError: no address"


@pytest.mark.parametrize(
    "errors",
    [["ValueError"] * 4 + ["TimeoutError"] * 3, ["TimeoutError"] * 4 + ["ValueError"]],
    ids=["its policy gives more", "without a policy"],
)
def test_the_end_of_a_task_is_told_at_the_attempt_that_is_the_last_for_its_error(
    shop: Any, told: Told, sent: Sent, set_tasks: SetTasks, url: str, errors: list[str]
) -> None:
    """It was told when the queue's attempts were used, though others followed; or never."""
    set_tasks(URL=url, SECRET=SECRET, HANDLER={"retry": {TimeoutError: [0] * 6}})
    sent.client.configure("default", back_off=(0,))
    shop.fail.enqueue(errors)
    run_all()
    assert told.said == [("started", "RUNNING")] * len(errors) + [("finished", "FAILED")]
    assert len(sent.client.search_dead_letters("default-dlq").messages) == 1


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("frameworks.shop_tasks.no_task", "frameworks.shop_tasks.no_task is no task"),
        ("frameworks.shop_tasks.of_a_newer_version", "of_a_newer_version"),
    ],
)
def test_a_task_that_is_not_here_fails_the_attempt(
    shop: Any, sent: Sent, set_tasks: SetTasks, url: str, name: str, problem: str
) -> None:
    """Another worker may have it, while versions change."""
    set_tasks(URL=url, SECRET=SECRET, HANDLER={"retry": [3_600]})
    call = {"task": name, "id": "1", "args": [], "kwargs": {}}
    sent.client.produce("default", json.dumps(call))
    run_all()
    (message,) = sent()
    assert message.state == "delayed"
    assert problem in str(sent.client.message("default", message.id).last_error)


def test_a_result_that_is_no_json_fails_as_in_djangos_own_backends(
    shop: Any, told: Told, set_tasks: SetTasks, url: str
) -> None:
    set_tasks(URL=url, SECRET=SECRET, HANDLER={"retry": []})
    shop.make.enqueue()
    run_all()
    (result,) = told.results
    assert (result.status, result.errors[0].exception_class) == ("FAILED", TypeError)


def test_a_receiver_that_fails_does_not_have_the_task_run_again(shop: Any, caplog: Any) -> None:
    from forq_trio.worker.django import worker_of
    from forq_trio.worker.django.api import signals

    def fail(**given: Any) -> None:
        raise OSError("no line")

    signals.task_finished.connect(fail)
    try:
        shop.greet.enqueue("anna")
        run_all()
    finally:
        signals.task_finished.disconnect(fail)
    assert len(shop.seen) == worker_of().stats["default"].handled == 1
    assert "no line" in caplog.text


def test_connections_are_closed_as_after_a_request(shop: Any) -> None:
    shop.connect.enqueue()
    run_all()
    ((wrapper, was_open),) = shop.seen
    assert (was_open, wrapper.connection) == (True, None)


def test_tasks_are_tested_in_memory_with_a_clock(shop: Any) -> None:
    from django.utils import timezone

    from forq_trio.worker.django import worker_of

    async def main() -> None:
        async with worker_of().testing() as t:
            await shop.greet_all.aenqueue(["anna", "bela"])
            await shop.greet.using(run_after=timezone.now() + timedelta(hours=1)).aenqueue("cleo")
            assert await t.drain() == 3
            assert [each.args for each in t.sent("default")] == [
                [["anna", "bela"]],
                ["cleo"],
                ["anna"],
                ["bela"],
            ]
            assert len(shop.seen) == 3
            await t.advance(3_600)
            assert await t.drain() == 1

    anyio.run(main, backend="asyncio")
    assert shop.seen[0] == "not yet"
    assert sorted(each[1] for each in shop.seen[1:]) == ["anna", "bela", "cleo"]


def test_the_worker_may_have_more_than_tasks(shop: Any, set_tasks: SetTasks) -> None:
    from forq_trio.worker.django import worker_of

    set_tasks()
    app = worker_of()

    @app.on("hooks")
    def note(text: str, job: Job) -> None:
        shop.seen.append((job.queue, text))
        shop.greet.enqueue(text)

    async def main() -> None:
        async with app.testing() as t:
            await note.later("anna")
            assert await t.drain() == 2

    anyio.run(main, backend="trio")
    assert shop.seen == [("hooks", "anna"), ("greet", "anna", False)]
