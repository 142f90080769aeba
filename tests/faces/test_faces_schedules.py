"""Schedules: saved, shown and run in the same way through every face, also over a restart."""

import pytest
import trio

from forq_trio import InvalidCron, NewSchedule, ScheduleNotFound, Timing
from forq_trio.model.schedules.types import SavedRun

from .face import Face
from .running import open_face
from .waiter import park
from .words import MINUTE, SECOND, code_of, contents

MINUTELY = NewSchedule(queue="q", content="m", every="1min", attributes={"a": "b"}, priority=7)


def outcomes(runs: tuple[SavedRun, ...]) -> list[tuple[str, int]]:
    return [(run.result, run.runs) for run in runs]


async def test_a_schedule_sends_its_message_at_each_of_its_times(face: Face) -> None:
    made = await face.methods.save_schedule("s", MINUTELY)
    assert (made.name, made.next_run, made.paused, made.made_by) == ("s", made.made_at + MINUTE, False, None)
    await face.advance(MINUTE - 1)
    assert await face.has_nothing()
    for number in (1, 2):
        await face.advance(MINUTE)
        delivery = await face.take()
        assert (delivery.content, delivery.attributes, delivery.priority) == ("m", {"a": "b"}, 7)
        details = await face.methods.schedule("s")
        assert details.schedule.next_run == made.made_at + (number + 1) * MINUTE
        latest = details.schedule.last_run
        assert latest == details.runs[0]
        assert latest is not None
        assert (latest.nominal, latest.message_id) == (made.made_at + number * MINUTE, delivery.id)
    assert outcomes(details.runs) == [("sent", 1), ("sent", 1)]
    assert [run.at for run in details.next_runs][:2] == [made.made_at + n * MINUTE for n in (3, 4)]
    assert (await face.methods.schedule("s", runs=1)).runs == details.runs[:1]


async def test_a_run_wakes_a_consumer_that_waits(face: Face) -> None:
    await face.methods.save_schedule("s", NewSchedule(queue="q", content="m", every="1s"))
    async with trio.open_nursery() as nursery:
        waiter = await park(face, nursery)
        await face.advance(SECOND)
        assert await waiter.contents() == ["m"]


async def test_pause_resume_and_a_run_by_hand(face: Face) -> None:
    await face.methods.save_schedule("s", MINUTELY)
    paused = await face.methods.pause_schedule("s")
    assert (paused.paused, paused.next_run) == (True, None)
    await face.advance(10 * MINUTE)
    assert await face.has_nothing()
    produced = await face.methods.run_schedule("s")
    assert (await face.take()).id == produced.id
    resumed = await face.methods.resume_schedule("s")
    assert (resumed.paused, resumed.next_run) == (False, resumed.made_at + 11 * MINUTE)
    assert outcomes((await face.methods.schedule("s")).runs) == [("by_hand", 1)]


async def test_a_run_is_skipped_while_the_last_one_is_pending(face: Face) -> None:
    patient = NewSchedule(queue="q", content="m", every="1min", while_pending="skip")
    await face.methods.save_schedule("s", patient)
    await face.advance(MINUTE + SECOND)
    delivery = await face.take(lease_ms=60 * MINUTE)
    await face.advance(MINUTE)
    details = await face.methods.schedule("s")
    assert outcomes(details.runs) == [("skipped", 1), ("sent", 1)]
    assert details.runs[0].message_id == delivery.id
    await face.ack(delivery.receipt)
    await face.advance(MINUTE)
    assert outcomes((await face.methods.schedule("s")).runs)[0] == ("sent", 1)


async def test_a_schedule_is_listed_changed_and_deleted(face: Face) -> None:
    for name in ("b", "a", "c"):
        await face.methods.save_schedule(name, MINUTELY)
    page = await face.methods.schedules(limit=2)
    assert ([each.name for each in page.schedules], page.next) == (["a", "b"], "b")
    page = await face.methods.schedules(after=page.next)
    assert ([each.name for each in page.schedules], page.next) == (["c"], None)
    changed = await face.methods.save_schedule("a", NewSchedule(queue="r", content="n", cron="@hourly"))
    assert (changed.queue, changed.cron, changed.every) == ("r", "@hourly", None)
    shown = (await face.methods.schedule("a")).schedule
    assert (shown.content, shown.attributes) == ("n", None)
    refused = face.methods.save_schedule("a", MINUTELY, only_new=True)
    assert await code_of(refused) == "conflict.schedule_exists"
    await face.methods.delete_schedule("a")
    for call in (face.methods.schedule, face.methods.delete_schedule, face.methods.run_schedule):
        with pytest.raises(ScheduleNotFound):
            await call("a")


async def test_an_error_in_a_cron_expression_has_its_place(face: Face) -> None:
    wrong = "0 25 * * *"
    for call in (
        face.methods.next_runs(Timing(cron=wrong)),
        face.methods.save_schedule("s", NewSchedule(queue="q", content="m", cron=wrong)),
    ):
        with pytest.raises(InvalidCron) as caught:
            await call
        assert caught.value.place is not None
        assert caught.value.place[:3] == (2, 2, 4)
        assert "0-23" in caught.value.place.allowed
        assert caught.value.field == "cron"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "é", "\ud800", "x" * 129])
async def test_a_name_that_no_schedule_can_have_is_refused(face: Face, name: str) -> None:
    expected = "bad_request.schedule.invalid_name"
    assert await code_of(face.methods.save_schedule(name, MINUTELY)) == expected
    for call in (
        face.methods.schedule,
        face.methods.pause_schedule,
        face.methods.resume_schedule,
        face.methods.run_schedule,
        face.methods.delete_schedule,
    ):
        assert await code_of(call(name)) == expected


async def test_a_schedule_outlives_a_restart_and_sends_each_run_once(kind: str, url: str) -> None:
    async with open_face(kind, url) as face:
        made = await face.methods.save_schedule("s", MINUTELY)
        await face.advance(MINUTE + SECOND)
        assert contents(await face.receive(most=10)) == ["m"]
        before = await face.methods.schedule("s")
    async with open_face(kind, url) as face:
        assert await face.methods.schedule("s") == before
        assert before.schedule.next_run == made.made_at + 2 * MINUTE
        await face.advance(MINUTE)
        assert contents(await face.receive(most=10)) == ["m"]
