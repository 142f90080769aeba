"""Redrives that outlive the process, are paused, resumed, dismissed, or delete; and how many there may be."""

import pytest
import trio

from forq_trio.model import limits
from forq_trio.model.dead_letters.redrives import RedriveTask
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.errors import RedriveNotFound, RedriveStateConflict, StorageUnavailable, TooManyRedrives
from forq_trio.model.messages.new_message import NewMessage
from support.actors import T0, all_idle
from support.results import oks

from .workbench import DEAD, QUEUE, Workbench, open_workbench

SLOW = 1


async def running(bench: Workbench, moved: int, **options) -> RedriveTask:
    """A task, one message a second, that has moved so many."""
    task = await bench.broker.redrive_tasks.start(DEAD, rate_per_second=SLOW, **options)
    for so_far in range(1, moved + 1):
        await bench.until_seen(task, lambda task, so_far=so_far: task.moved == so_far)
        if so_far < moved:
            await bench.advance(1)
    return bench.task(task)


async def finish(bench: Workbench, task: RedriveTask) -> RedriveTask:
    """The task once it has ended, however long that takes."""
    while not bench.task(task).ended:
        await bench.advance(1)
        await all_idle()
    return bench.task(task)


async def test_after_a_restart_it_goes_on_and_counts_each_once(url: str) -> None:
    async with open_workbench(url) as bench:
        ids = await bench.fail(*map(str, range(6)))
        task = await running(bench, 3, started_by="ann")
        assert (task.moved, task.searched, task.matched) == (3, 3, 3)
    async with open_workbench(url) as bench:
        again = bench.task(task)
        assert (again.state, again.started_by, again.rate_per_second) == ("running", "ann", SLOW)
        # One that was moved before fails again while the walk goes on: it is behind the cursor, and too late.
        await bench.until_seen(task, lambda task: task.moved == 4)
        await bench.nack(await bench.broker.receive(QUEUE, wait_ms=0))
        await bench.all_dead(3)
        ended = await finish(bench, task)
        assert ended.state == "done"
        assert (ended.moved, ended.searched, ended.matched, ended.total) == (6, 6, 6, 6)
        assert (bench.count(DEAD), bench.count(QUEUE)) == (1, 5)
        assert sorted(await bench.ids(DEAD) + await bench.ids(QUEUE)) == sorted(ids)
    async with open_workbench(url) as bench:
        assert bench.broker.redrive_tasks.all() == [ended]


async def test_a_paused_one_stays_paused_over_a_restart_until_it_is_resumed(url: str) -> None:
    async with open_workbench(url) as bench:
        await bench.fail(*map(str, range(4)))
        task = await running(bench, 2)
        paused = await bench.broker.redrive_tasks.pause(task.id)
        assert (paused.state, paused.moved, paused.paused_at) == ("paused", 2, T0 + 1_000)
        assert await bench.broker.redrive_tasks.pause(task.id) == paused
    async with open_workbench(url) as bench:
        await bench.advance(10)
        await all_idle()
        assert bench.task(task) == paused
        resumed = await bench.broker.redrive_tasks.resume(task.id)
        assert (resumed.state, resumed.paused_at) == ("running", None)
        assert (await bench.broker.redrive_tasks.resume(task.id)).state == "running"
        assert (await finish(bench, task)).moved == 4


async def test_a_cancelled_one_stays_cancelled_over_a_restart(url: str) -> None:
    async with open_workbench(url) as bench:
        await bench.fail(*map(str, range(3)))
        task = await bench.broker.redrive_tasks.cancel((await running(bench, 1)).id)
    async with open_workbench(url) as bench:
        assert bench.task(task) == task
        await bench.advance(10)
        assert bench.count(DEAD) == 2


async def test_a_paused_one_is_cancelled(bench: Workbench) -> None:
    await bench.fail("a", "b")
    task = await running(bench, 1)
    await bench.broker.redrive_tasks.pause(task.id)
    cancelled = await bench.broker.redrive_tasks.cancel(task.id)
    assert (cancelled.state, cancelled.moved, cancelled.paused_at) == ("cancelled", 1, None)
    assert await bench.broker.redrive_tasks.wait(task.id) == cancelled


async def test_what_a_state_does_not_allow(bench: Workbench) -> None:
    await bench.fail("a", "b")
    redrives = bench.broker.redrive_tasks
    task = await running(bench, 1)
    with pytest.raises(RedriveStateConflict):
        await redrives.dismiss(task.id)
    await redrives.pause(task.id)
    with pytest.raises(RedriveStateConflict):
        await redrives.dismiss(task.id)
    await redrives.cancel(task.id)
    for change in (redrives.pause, redrives.resume):
        with pytest.raises(RedriveStateConflict, match="cancelled"):
            await change(task.id)
    await redrives.dismiss(task.id)
    for change in (redrives.pause, redrives.resume, redrives.cancel, redrives.dismiss):
        with pytest.raises(RedriveNotFound):
            await change(task.id)


async def test_a_dismissed_one_is_forgotten_for_good(url: str) -> None:
    async with open_workbench(url) as bench:
        await bench.broker.produce(QUEUE, "x")
        task = await bench.redriven()
        await bench.broker.redrive_tasks.dismiss(task.id)
        assert bench.broker.redrive_tasks.all() == []
    async with open_workbench(url) as bench:
        assert bench.broker.redrive_tasks.all() == []


@pytest.mark.parametrize("change", ["pause", "cancel"])
async def test_a_change_that_the_database_refuses_lets_it_go_on(bench: Workbench, change: str) -> None:
    await bench.fail("a", "b", "c")
    task = await running(bench, 1)
    bench.engine.refusals = 1
    with pytest.raises(StorageUnavailable):
        await getattr(bench.broker.redrive_tasks, change)(task.id)
    assert bench.task(task).state == "running"
    assert (await finish(bench, task)).moved == 3


async def test_a_caller_who_leaves_does_not_undo_the_change(bench: Workbench) -> None:
    await bench.fail("a", "b")
    task = await running(bench, 1)
    with trio.move_on_after(0):
        await bench.broker.redrive_tasks.pause(task.id)
    with trio.CancelScope() as scope:
        bench.engine.before_commit = scope.cancel
        await bench.broker.redrive_tasks.pause(task.id)
    bench.engine.before_commit = lambda: None
    assert bench.task(task).state == "paused"
    assert bench.system.writer.snapshot().redrives[task.id].state == "paused"


async def test_a_deletion_removes_what_matches_and_leaves_what_a_consumer_holds(bench: Workbench) -> None:
    await bench.fail("red 1", "blue", "red 2", "red 3")
    (held,) = await bench.broker.receive(DEAD, wait_ms=0)
    assert held.content == "red 1"
    task = await bench.redriven(MessageFilter(text="red"), action="delete")
    assert (task.state, task.matched, task.moved, task.skipped) == ("done", 2, 2, 1)
    assert [message.content for message in await bench.all_of(DEAD)] == ["blue", "red 1"]
    assert bench.count(QUEUE) == 0
    assert oks(await bench.broker.ack(DEAD, [held.receipt])) == [True]


async def test_only_above_a_sequence(bench: Workbench) -> None:
    ids = await bench.fail(*map(str, range(7)))
    bound = (await bench.all_of(DEAD))[-3].sequence
    started = await bench.broker.redrive_tasks.start(
        DEAD, MessageFilter(above_sequence=bound), action="delete", started_by="ann"
    )
    info = await bench.broker.redrive_info(DEAD, started.id)
    assert (info.action, info.started_by, info.filter.above_sequence) == ("delete", "ann", bound)
    task = await bench.broker.redrive_tasks.wait(info.id)
    assert (task.moved, await bench.ids(DEAD)) == (4, ids[2::-1])


async def test_a_page_without_movable_messages_saves_its_cursor_once_a_second(bench: Workbench) -> None:
    await bench.broker.configure(QUEUE, dead_letter_queue="morgue")
    await bench.fail("x", dead="morgue")
    await bench.broker.produce_many("morgue", [NewMessage("sent here")] * 100)
    await bench.broker.produce_many("morgue", [NewMessage("sent here")] * 50)
    before = bench.engine.commits
    task = await bench.broker.redrive_tasks.start("morgue")
    task = await bench.broker.redrive_tasks.wait(task.id)
    assert (task.moved, task.skipped, task.searched) == (1, 150, 151)
    assert bench.engine.commits - before <= 3  # its start, the one move, its end


async def test_no_more_than_may_be_remembered_and_none_that_goes_on_is_forgotten(
    bench: Workbench, monkeypatch
) -> None:
    monkeypatch.setattr(limits, "REDRIVES_REMEMBERED_MAX", 3)
    await bench.fail("a", "b")
    redrives = bench.broker.redrive_tasks
    kept = await running(bench, 1)
    await redrives.pause(kept.id)
    first, second, third = [await bench.redriven(dry_run=True) for _ in range(3)]
    assert [task.id for task in redrives.all()] == [third.id, second.id, kept.id]
    with pytest.raises(RedriveNotFound):
        redrives.get(first.id)
    for _ in range(2):
        other = await redrives.start(DEAD, rate_per_second=SLOW)
        await redrives.pause(other.id)
    with pytest.raises(TooManyRedrives):
        await redrives.start(DEAD)
    assert len(redrives.all()) == 3


async def test_resuming_counts_as_running(bench: Workbench, monkeypatch) -> None:
    monkeypatch.setattr(limits, "REDRIVES_RUNNING_MAX", 1)
    await bench.fail("a", "b", "c")
    redrives = bench.broker.redrive_tasks
    first = await running(bench, 1)
    await redrives.pause(first.id)
    second = await redrives.start(DEAD, rate_per_second=SLOW)
    with pytest.raises(TooManyRedrives):
        await redrives.resume(first.id)
    await redrives.cancel(second.id)
    await redrives.resume(first.id)
