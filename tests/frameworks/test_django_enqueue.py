"""Django's tasks as messages: when they are sent, with which options, and what is refused before the commit."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import anyio
import pytest

from forq_trio import ContentTooLarge, OutOfRange
from support.real_server import SECRET

from .conftest import Sent, SetTasks


def arguments(sent: Sent, queue: str = "default") -> list[list[Any]]:
    return [json.loads(each.content)["args"] for each in sent(queue)]


def test_without_a_transaction_a_task_is_sent_at_once(shop: Any, sent: Sent) -> None:
    result = shop.greet.enqueue("anna", loud=True)
    (message,) = sent()
    call = {
        "task": "frameworks.shop_tasks.greet",
        "id": result.id,
        "args": ["anna"],
        "kwargs": {"loud": True},
    }
    assert json.loads(message.content) == call
    assert (result.status, result.backend, result.attempts) == ("READY", "default", 0)
    assert result.enqueued_at is not None


def test_in_a_transaction_it_is_sent_when_that_commits(shop: Any, sent: Sent) -> None:
    from django.db import transaction

    told: list[str] = []
    with ids_told(told):
        with transaction.atomic():
            result = shop.greet.enqueue("anna")
            with suppress(ZeroDivisionError), transaction.atomic():
                shop.greet.enqueue("undone")
                raise ZeroDivisionError
            assert (sent(), told, result.enqueued_at) == ([], [], None)
        assert (arguments(sent), told) == ([["anna"]], [result.id])
        assert result.enqueued_at is not None
        with suppress(ZeroDivisionError), transaction.atomic():
            shop.greet.enqueue("never")
            raise ZeroDivisionError
        shop.greet.enqueue("bela")  # the connection is open, and in no transaction
    assert arguments(sent) == [["anna"], ["bela"]]


@contextmanager
def ids_told(ids: list[str]) -> Iterator[None]:
    """Add the ids of tasks that Django's signal tells as sent."""
    from forq_trio.worker.django.api import signals

    def note(*, task_result: Any, **given: Any) -> None:
        ids.append(task_result.id)

    signals.task_enqueued.connect(note)
    yield
    signals.task_enqueued.disconnect(note)


def test_what_cannot_be_sent_is_refused_before_the_commit(shop: Any, sent: Sent) -> None:
    from django.db import transaction
    from django.utils import timezone

    with transaction.atomic():
        with pytest.raises(ContentTooLarge):
            shop.greet.enqueue("x" * 300_000)
        with pytest.raises(TypeError):
            shop.greet.enqueue(object())
        with pytest.raises(ValueError, match="nan"):
            shop.greet.enqueue(float("nan"))
        with pytest.raises(OutOfRange):
            shop.greet.using(run_after=timezone.now() + timedelta(days=400)).enqueue("anna")
        shop.greet.enqueue("bela")
    assert arguments(sent) == [["bela"]]


@pytest.mark.parametrize(("priority", "stored"), [(-100, 0), (0, 100), (7, 107), (100, 200)])
def test_priorities_lie_around_that_of_a_message(shop: Any, sent: Sent, priority: int, stored: int) -> None:
    shop.greet.using(priority=priority).enqueue("anna")
    assert [each.priority for each in sent()] == [stored]


def test_a_task_for_later_is_delayed_and_one_that_is_late_is_not(shop: Any, sent: Sent) -> None:
    from django.utils import timezone

    shop.greet.using(run_after=timezone.now() + timedelta(hours=1)).enqueue("anna")
    shop.greet.using(run_after=timezone.now() - timedelta(hours=1)).enqueue("bela")
    assert [(json.loads(each.content)["args"], each.state) for each in sent()] == [
        (["anna"], "delayed"),
        (["bela"], "ready"),
    ]


def test_a_task_is_due_no_later_than_it_asks(shop: Any, sent: Sent) -> None:
    from django.utils import timezone

    for name in range(10):
        shop.greet.using(run_after=timezone.now() + timedelta(hours=1)).enqueue(name)
    stored = [sent.client.message("default", each.id) for each in sent()]
    delays = [each.process_after - each.received_at for each in stored]
    assert len(delays) == 10
    assert max(delays) <= 3_600_000


def test_queues_have_their_prefix_and_others_are_refused(
    shop: Any, sent: Sent, set_tasks: SetTasks, url: str
) -> None:
    set_tasks(URL=url, SECRET=SECRET, PREFIX="shop.")
    shop.greet.enqueue("anna")
    shop.greet.using(queue_name="letters").enqueue("bela")
    assert arguments(sent, "shop.default") == [["anna"]]
    assert arguments(sent, "shop.letters") == [["bela"]]
    with pytest.raises(Exception, match="Queue 'others' is not valid for backend"):
        shop.greet.using(queue_name="others")


def test_asyncio_awaits_and_is_not_blocked(shop: Any, sent: Sent) -> None:
    async def view() -> None:
        with pytest.raises(RuntimeError, match=r"block the event loop.*`aenqueue`"):
            shop.greet.enqueue("never")
        await shop.greet.aenqueue("anna")

    anyio.run(view, backend="asyncio")
    assert arguments(sent) == [["anna"]]


def test_all_threads_send_through_one_worker(shop: Any, sent: Sent) -> None:
    from forq_trio.worker.django import worker_of

    begin = threading.Barrier(8)
    workers = set()

    def send(number: int) -> None:
        begin.wait()
        workers.add(worker_of())
        for each in range(5):
            shop.greet.enqueue(5 * number + each)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(arguments(sent)) == [[number] for number in range(40)]
    assert workers == {worker_of()}


def test_an_outbox_has_tasks_in_the_transaction_and_the_worker_relays_them(
    shop: Any, set_tasks: SetTasks, url: str
) -> None:
    from django.db import connection, transaction

    from forq_trio import outbox
    from forq_trio.worker.django import worker_of

    set_tasks(URL="http://127.0.0.1:1", SECRET=SECRET, OUTBOX=True)  # there is no server
    outbox.create_table(connection)
    with transaction.atomic():
        result = shop.greet.enqueue("anna")
        assert result.enqueued_at is not None
    with suppress(ZeroDivisionError), transaction.atomic():
        shop.greet.enqueue("never")
        raise ZeroDivisionError
    set_tasks(URL=url, SECRET=SECRET, OUTBOX=True)
    worker_of().run(stop_when_empty=True)
    assert shop.seen == [("greet", "anna", False)]
