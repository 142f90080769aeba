"""Redrives of all that match: which messages, how fast, how one sees and stops them."""

import pytest
import trio
import trio.testing

from forq_trio.model.dead_letters.redrives import RedriveTask
from forq_trio.model.errors import InvalidQueueName, QueueNotFound, RedriveNotFound, Stopping, TooManyRedrives
from forq_trio.model.limits import (
    KEY_SHARE_OF_FEW,
    REDRIVE_PAGE_MAX,
    REDRIVE_RATE_MAX,
    REDRIVE_RETRIES_MAX,
    REDRIVES_RUNNING_A_KEY_MAX,
    REDRIVES_RUNNING_MAX,
    SEARCH_PAGE_MAX,
)
from support.actors import T0, all_idle
from support.results import oks

from .workbench import DEAD, QUEUE, Workbench, open_workbench

SLOW = 1
"""A rate at which a task is still running when the test has done what it wants to."""


async def test_all_of_them_over_several_pages(bench: Workbench) -> None:
    ids = await bench.fail(*map(str, range(2 * SEARCH_PAGE_MAX + 50)))
    task = await bench.redriven()
    assert task.state == "done"
    assert (task.matched, task.moved, task.skipped) == (250, 250, 0)
    assert (task.searched, task.total) == (250, 250)
    assert (task.started_at, task.finished_at, task.error) == (T0, T0, None)
    assert set(await bench.ids(QUEUE)) == set(ids)
    assert bench.count(DEAD) == 0
    received = await bench.broker.receive(QUEUE, max_messages=100, wait_ms=0)
    assert [delivery.id for delivery in received] == ids[:100]  # the order is that of their arrival


async def test_nothing_there(bench: Workbench) -> None:
    with pytest.raises(QueueNotFound):
        await bench.redriven()
    await bench.broker.produce(QUEUE, "x")
    task = await bench.redriven()
    assert (task.state, task.searched, task.total, task.moved) == ("done", 0, 0, 0)


async def test_a_dry_run_counts_and_moves_nothing(bench: Workbench) -> None:
    ids = await bench.fail(*map(str, range(SEARCH_PAGE_MAX + 1)))
    task = await bench.redriven(dry_run=True)
    assert (task.state, task.matched, task.moved, task.searched) == ("done", 101, 0, 101)
    assert bench.moves() == []
    assert await bench.ids(DEAD) == ids[::-1]


@pytest.mark.parametrize("dry_run", [True, False])
async def test_what_cannot_be_moved_is_skipped(bench: Workbench, dry_run: bool) -> None:
    await bench.broker.configure(QUEUE, dead_letter_queue="morgue")
    held, _ = await bench.fail("held", "free", dead="morgue")
    nowhere = await bench.broker.produce("morgue", "from nowhere")
    (delivery,) = await bench.broker.receive("morgue", wait_ms=0)
    assert delivery.id == held
    task = await bench.broker.redrive_tasks.start("morgue", dry_run=dry_run)
    task = await bench.broker.redrive_tasks.wait(task.id)
    assert (task.matched, task.skipped, task.moved) == (1, 2, 0 if dry_run else 1)
    if not dry_run:
        assert await bench.ids("morgue") == [nowhere.id, held]
    assert oks(await bench.broker.ack("morgue", [delivery.receipt])) == [True]


async def test_a_message_that_fails_again_meanwhile_is_not_driven_round(bench: Workbench) -> None:
    (old,) = await bench.fail("old")
    (new,) = await bench.fail("new")
    task = await bench.broker.redrive_tasks.start(DEAD, rate_per_second=SLOW)
    await bench.until_seen(task, lambda task: task.moved == 1)
    await bench.nack(await bench.broker.receive(QUEUE, wait_ms=0))
    await bench.all_dead(2)
    await bench.advance(1)
    task = await bench.broker.redrive_tasks.wait(task.id)
    assert (task.matched, task.moved) == (2, 2)
    assert (await bench.ids(DEAD), await bench.ids(QUEUE)) == ([new], [old])


async def test_a_message_that_becomes_a_dead_letter_later_is_left(bench: Workbench) -> None:
    """Also one that was sent before all the others, so that the search has yet to come to it."""
    early = await bench.broker.produce("elsewhere", "early", ttl_ms=500, dead_letter_queue=DEAD)
    await bench.fail(*map(str, range(REDRIVE_PAGE_MAX + 1)))
    task = await bench.broker.redrive_tasks.start(DEAD, rate_per_second=REDRIVE_RATE_MAX)
    await bench.until_seen(task, lambda task: task.moved == REDRIVE_PAGE_MAX)
    await bench.advance(1)
    task = await bench.broker.redrive_tasks.wait(task.id)
    assert (task.matched, task.moved) == (51, 51)
    assert await bench.ids(DEAD) == [early.id]


@pytest.mark.parametrize(("rate", "step", "every"), [(2, 1, 0.5), (20, 2, 0.1)])
async def test_the_rate_is_kept_to_the_millisecond(
    bench: Workbench, rate: int, step: int, every: float
) -> None:
    await bench.fail(*map(str, range(8 * step)))
    task = await bench.broker.redrive_tasks.start(DEAD, rate_per_second=rate)
    await bench.until_seen(task, lambda task: task.moved == step)
    for number in range(2, 9):
        await bench.advance(every - 0.001)
        await all_idle()
        assert bench.task(task).moved == (number - 1) * step
        await bench.advance(0.001)
        await bench.until_seen(task, lambda task, number=number: task.moved == number * step)
    await bench.broker.redrive_tasks.wait(task.id)
    assert bench.moves() == [(pytest.approx(number * every, abs=0.001), step) for number in range(8)]


async def test_a_rate_is_not_made_up_for_after_a_long_delay(bench: Workbench) -> None:
    await bench.fail(*map(str, range(20)))
    task = await bench.broker.redrive_tasks.start(DEAD, rate_per_second=10)
    await bench.until_seen(task, lambda task: task.moved == 1)
    await bench.advance(1.0)
    await bench.until_seen(task, lambda task: task.moved >= 2)
    await all_idle()
    assert bench.task(task).moved <= 3  # one that was due, and one step to catch up


async def test_progress_can_be_read_while_it_runs(bench: Workbench) -> None:
    await bench.fail(*map(str, range(5)))
    task = await bench.broker.redrive_tasks.start(DEAD, rate_per_second=SLOW)
    assert (task.state, task.total, task.searched) == ("running", 5, 0)
    for moved in range(1, 4):
        await bench.until_seen(task, lambda task, moved=moved: task.moved == moved)
        now = bench.task(task)
        assert (now.state, now.searched, now.matched) == ("running", moved, moved)
        assert now.finished_at is None
        assert bench.broker.redrive_tasks.all(DEAD) == [now]
        assert bench.broker.redrive_tasks.all("other-dlq") == []
        await bench.advance(1)


async def test_cancelled_midway_moved_and_left_are_all(bench: Workbench) -> None:
    ids = await bench.fail(*map(str, range(10)))
    started = await bench.broker.redrive_tasks.start(DEAD, rate_per_second=SLOW)
    for moved in (1, 2, 3):
        await bench.until_seen(started, lambda task, moved=moved: task.moved == moved)
        await bench.advance(1)
    await bench.until_seen(started, lambda task: task.moved == 4)
    task = await bench.broker.redrive_tasks.cancel(started.id)
    assert (task.state, task.moved, task.finished_at) == ("cancelled", 4, T0 + 3_000)
    assert (set(await bench.ids(QUEUE)), set(await bench.ids(DEAD))) == (set(ids[6:]), set(ids[:6]))
    assert await bench.broker.redrive_tasks.cancel(started.id) == task
    rest = await bench.redriven()
    assert (rest.moved, bench.count(DEAD), bench.count(QUEUE)) == (6, 0, 10)


async def test_cancelling_waits_for_the_move_under_way(bench: Workbench) -> None:
    ids = await bench.fail(*map(str, range(REDRIVE_PAGE_MAX + 1)))
    started = await bench.broker.redrive_tasks.start(DEAD, rate_per_second=REDRIVE_RATE_MAX)
    cancelled: list[RedriveTask] = []

    def cancel() -> None:
        if bench.moves():  # the first one is about to be committed
            bench.engine.before_commit = lambda: None
            nursery.start_soon(cancel_it)

    async def cancel_it() -> None:
        cancelled.append(await bench.broker.redrive_tasks.cancel(started.id))

    async with trio.open_nursery() as nursery:
        bench.engine.before_commit = cancel
        task = await bench.broker.redrive_tasks.wait(started.id)
    assert cancelled == [task]
    assert (task.state, task.moved) == ("cancelled", REDRIVE_PAGE_MAX)
    assert (set(await bench.ids(QUEUE)), await bench.ids(DEAD)) == (set(ids[1:]), ids[:1])


async def test_a_cancelled_wait_leaves_the_task_alone(bench: Workbench) -> None:
    await bench.fail("a", "b")
    task = await bench.broker.redrive_tasks.start(DEAD, rate_per_second=SLOW)
    with trio.CancelScope() as scope:
        scope.cancel()
        await bench.broker.redrive_tasks.wait(task.id)
    await bench.until_seen(task, lambda task: task.moved == 1)
    await bench.advance(1)
    assert (await bench.broker.redrive_tasks.wait(task.id)).state == "done"


async def test_what_the_database_refuses_in_passing_is_tried_again(bench: Workbench) -> None:
    await bench.fail(*map(str, range(3)))
    started = await bench.broker.redrive_tasks.start(DEAD)
    bench.engine.refusals = 2
    for _ in range(2):
        await bench.until_refused()
        await bench.advance_without_looking(1)
    task = await bench.broker.redrive_tasks.wait(started.id)
    assert (task.state, task.matched, task.moved) == ("done", 3, 3)
    assert (bench.count(DEAD), bench.count(QUEUE)) == (0, 3)


async def test_a_database_that_keeps_refusing_fails_the_task_and_loses_nothing(bench: Workbench) -> None:
    ids = await bench.fail(*map(str, range(3)))
    started = await bench.broker.redrive_tasks.start(DEAD)
    bench.engine.refusals = 1_000
    for _ in range(REDRIVE_RETRIES_MAX + 1):
        await bench.until_refused()
        await bench.advance_without_looking(1)
    task = await bench.broker.redrive_tasks.wait(started.id)
    assert (task.state, task.moved, task.error) == ("failed", 0, "disk I/O error")
    bench.engine.refusals = 0
    assert await bench.ids(DEAD) == ids[::-1]
    assert (await bench.broker.redrive_tasks.resume(task.id)).state == "running"
    again = await bench.broker.redrive_tasks.wait(task.id)
    assert (again.id, again.state, again.moved, again.error) == (task.id, "done", 3, None)


async def test_a_queue_that_takes_no_dead_letters_any_more_fails_the_task(bench: Workbench) -> None:
    await bench.broker.configure(QUEUE, dead_letter_queue="morgue")
    await bench.fail("a", "b", dead="morgue")
    started = await bench.broker.redrive_tasks.start("morgue", rate_per_second=SLOW)
    await bench.until_seen(started, lambda task: task.moved == 1)
    await bench.broker.reset_settings(QUEUE)
    await bench.advance(1)
    task = await bench.broker.redrive_tasks.wait(started.id)
    assert (task.state, task.moved) == ("failed", 1)
    assert task.error is not None
    assert "dead-letter queue" in task.error
    assert (bench.count("morgue"), bench.count(QUEUE)) == (1, 1)


async def test_so_many_run_at_once_and_no_more(bench: Workbench) -> None:
    await bench.fail(*map(str, range(3 * REDRIVES_RUNNING_MAX)))
    redrives = bench.broker.redrive_tasks
    keys = [f"token-{number % KEY_SHARE_OF_FEW}" for number in range(REDRIVES_RUNNING_MAX)]
    tasks = [await redrives.start(DEAD, rate_per_second=SLOW, started_by=key) for key in keys]
    with pytest.raises(TooManyRedrives):
        await redrives.start(DEAD)
    await redrives.cancel(tasks[3].id)
    await redrives.start(DEAD, dry_run=True)


async def test_one_key_leaves_places_to_others(bench: Workbench) -> None:
    await bench.fail(*map(str, range(3 * REDRIVES_RUNNING_MAX)))
    redrives = bench.broker.redrive_tasks
    for _ in range(REDRIVES_RUNNING_A_KEY_MAX):
        task = await redrives.start(DEAD, rate_per_second=SLOW, started_by="narrow")
    with pytest.raises(TooManyRedrives, match="redrives of this key run"):
        await redrives.start(DEAD, started_by="narrow")
    await redrives.start(DEAD, rate_per_second=SLOW)
    await redrives.pause(task.id)
    await redrives.start(DEAD, rate_per_second=SLOW, started_by="narrow")
    with pytest.raises(TooManyRedrives, match="redrives of this key run"):
        await redrives.resume(task.id)


async def test_tasks_of_the_same_queue_move_no_message_twice(bench: Workbench) -> None:
    ids = await bench.fail(*map(str, range(250)))
    started = [await bench.broker.redrive_tasks.start(DEAD) for _ in range(4)]
    ended = [await bench.broker.redrive_tasks.wait(task.id) for task in started]
    assert sum(task.moved for task in ended) == 250
    assert sorted(await bench.ids(QUEUE)) == sorted(ids)


async def test_bad_names(bench: Workbench) -> None:
    with pytest.raises(InvalidQueueName):
        await bench.broker.redrive_tasks.start("no queue-dlq")
    with pytest.raises(InvalidQueueName):
        await bench.broker.redrive_tasks.start(DEAD, target="no queue")
    with pytest.raises(RedriveNotFound):
        await bench.broker.redrive_tasks.cancel("nonsense")


async def test_the_end_of_the_system_ends_tasks_between_two_moves(url: str) -> None:
    async with open_workbench(url) as bench:
        await bench.fail("a", "b")
        started = await bench.broker.redrive_tasks.start(DEAD, rate_per_second=SLOW)
        await bench.until_seen(started, lambda task: task.moved == 1)
        redrives = bench.broker.redrive_tasks
    task = await redrives.wait(started.id)
    assert (task.state, task.moved) == ("running", 1)  # it goes on at the next start
    with pytest.raises(Stopping):
        await redrives.start(DEAD)
