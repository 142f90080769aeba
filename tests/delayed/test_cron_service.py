"""Recurring messages over a delayed queue: installed, replaced, uninstalled, on several nodes."""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
import trio

from forq_trio import ContentTooLarge
from forq_trio.delayed import (
    CronConfigHash,
    CronDailySchedule,
    CronMessage,
    CronService,
    DelayedQueue,
    DeliveryType,
)
from forq_trio.delayed.cron import epoch_ms, key_of
from support.actors import T0, TrioClock, all_idle

from .letters import ACQUIRE_MS, A, B, Letter, after, now, take, take_all

ONE, TWO = CronConfigHash.of_text("one"), CronConfigHash.of_text("two")
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


class ShiftedClock(TrioClock):
    """A clock that is wrong by so many ms."""

    def __init__(self, by_ms: int) -> None:
        self._by_ms = by_ms

    def now_ms(self) -> int:
        return super().now_ms() + self._by_ms


@pytest.fixture
def cron(queue) -> CronService[Letter]:
    return CronService(queue)


async def keys(queue, prefix: str = "") -> list[str]:
    return [each.keyed.key for each in (await queue.pending(prefix)).messages]


async def test_d42_ticks_have_their_keys_and_come_at_their_times(queue, cron, face) -> None:
    ticks = [CronMessage(A, after(10)), CronMessage(B, after(20))]
    await cron.install_tick(ONE, "report", ticks)
    assert await keys(queue) == [key_of(ONE, "report", after(10)), key_of(ONE, "report", after(20))]
    await face.advance(9_999)
    assert await queue.try_poll() is None
    await face.advance(1)
    envelope = await take(queue)
    assert (envelope.message_id, envelope.payload) == (ticks[0].key(ONE, "report"), A)


async def test_d43_another_hash_replaces_the_old_ones_under_its_prefix_alone(queue, cron) -> None:
    others = ("report2", "repor", "report/x", "Report", "re_ort", "re%")
    for prefix in (*others, "report"):
        await cron.install_tick(ONE, prefix, [CronMessage(A, after(10)), CronMessage(A, after(20))])
    await queue.offer_or_update("report/of mine", A, after(10))
    await cron.install_tick(TWO, "report", [CronMessage(B, after(10))])
    assert await keys(queue, "report/") == [
        key_of(TWO, "report", after(10)),
        "report/of mine",
        *(key_of(ONE, "report/x", after(seconds)) for seconds in (10, 20)),
    ]
    for prefix in others:
        assert len(await keys(queue, f"{prefix}/{ONE}/")) == 2


async def test_d43_the_same_hash_with_no_messages_removes_nothing(queue, cron) -> None:
    await cron.install_tick(ONE, "report", [CronMessage(A, after(10))])
    await cron.install_tick(ONE, "report", [])
    assert len(await keys(queue)) == 1
    await cron.install_tick(TWO, "report", [])
    assert await keys(queue) == []


async def test_d43_more_old_ones_than_a_page_has(queue, cron) -> None:
    await cron.install_tick(ONE, "report", [CronMessage(A, after(n)) for n in range(1, 251)])
    await cron.install_tick(TWO, "report", [])
    assert await keys(queue) == []


async def test_a_key_that_is_there_is_not_changed(queue, cron) -> None:
    await cron.install_tick(ONE, "report", [CronMessage(A, after(10))])
    await cron.install_tick(ONE, "report", [CronMessage(B, after(10))])
    assert (await queue.read(key_of(ONE, "report", after(10)))).payload == A


@pytest.mark.parametrize(("wildcard", "other"), [("a_b", "axb"), ("a%", "abc")])
async def test_d44_uninstall_removes_exactly_its_hash_and_prefix(queue, cron, wildcard, other) -> None:
    for prefix in (wildcard, other):
        for config in (ONE, TWO):
            at = after(10 if config is ONE else 20)
            await queue.offer_or_update(key_of(config, prefix, at), A, at)
    await cron.uninstall_tick(ONE, wildcard)
    assert sorted(await keys(queue)) == sorted(
        [key_of(TWO, wildcard, after(20)), key_of(ONE, other, after(10)), key_of(TWO, other, after(20))]
    )
    await cron.uninstall_tick(ONE, wildcard)
    assert len(await keys(queue)) == 3


@pytest.mark.parametrize("again", [False, True])
async def test_d45_messages_that_were_delivered_survive(queue, cron, face, again) -> None:
    await cron.install_tick(ONE, "report", [CronMessage(A, after(1))])
    await face.advance(1_000)
    envelope = await take(queue)
    if again:
        await face.advance(ACQUIRE_MS)
    await cron.install_tick(TWO, "report", [])
    await cron.uninstall_tick(ONE, "report")
    assert await queue.contains_message(envelope.message_id)
    if again:
        envelope = await take(queue)
        assert envelope.delivery_type is DeliveryType.REDELIVERY
    await envelope.acknowledge()
    assert await keys(queue) == []


async def test_d46_two_in_one_second_and_another_due_time(queue, cron, face) -> None:
    close = [after(10), after(10) + timedelta(microseconds=1)]
    moved = CronMessage(B, after(12), schedule_at_actual=after(5))
    await cron.install_tick(ONE, "report", [*(CronMessage(A, at) for at in close), moved])
    assert await keys(queue) == [key_of(ONE, "report", at) for at in (*close, after(12))]
    await face.advance(5_000)
    assert (await take(queue)).message_id == key_of(ONE, "report", after(12))


@pytest.mark.parametrize("prefix", ["", "p" * 142])
async def test_a_wrong_prefix_is_refused(cron, prefix) -> None:
    for call in (
        lambda: cron.install_tick(ONE, prefix, []),
        lambda: cron.uninstall_tick(ONE, prefix),
        lambda: cron.install(None, ONE, prefix, SECOND, lambda _: []),
    ):
        with pytest.raises(ValueError, match="prefix"):
            await call()


async def test_an_interval_of_nothing_is_refused(cron) -> None:
    with pytest.raises(ValueError, match="interval"):
        await cron.install(None, ONE, "report", timedelta(0), lambda _: [])


async def test_what_is_refused_is_told(cron) -> None:
    with pytest.raises(ContentTooLarge):
        await cron.install_tick(ONE, "report", [CronMessage(Letter("x" * 300_000), after(1))])


async def test_d48_a_periodic_tick(queue, cron, face) -> None:
    async with trio.open_nursery() as nursery:
        handle = await cron.install_periodic_tick(nursery, "tick", "1 h", lambda at: Letter(f"{at:%H:%M}"))
        first = datetime(2023, 11, 14, 23, tzinfo=UTC)
        assert now() == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
        assert await keys(queue) == [key_of(CronConfigHash.of_periodic(HOUR), "tick", first)]
        await passes(face, epoch_ms(first) - T0, 900_000)
        assert (await take(queue)).payload == Letter("23:00")
        await handle.close()


async def passes(face, ms: int, step_ms: int) -> None:
    """Let time pass in steps, so that every node looks when it would."""
    while ms > 0:
        await face.advance(min(ms, step_ms))
        ms -= step_ms


async def test_d49_a_daily_schedule(queue, cron, face) -> None:
    schedule = CronDailySchedule((time(12), time(18)), in_advance=timedelta(days=1))
    async with trio.open_nursery() as nursery:
        handle = await cron.install_daily_schedule(
            nursery, "report", schedule, lambda at: Letter(f"{at:%d %H}")
        )
        config = CronConfigHash.of_daily(schedule)
        assert await keys(queue) == [
            key_of(config, "report", datetime(2023, 11, 15, hour, tzinfo=UTC)) for hour in (12, 18)
        ]
        await face.advance(epoch_ms(datetime(2023, 11, 15, 12, tzinfo=UTC)) - T0)
        assert (await take(queue)).payload == Letter("15 12")
        await handle.close()


async def test_d50_close_ends_the_task_and_leaves_what_it_offered(queue, cron, face) -> None:
    looks = []
    async with trio.open_nursery() as nursery:
        handle = await cron.install(
            nursery, ONE, "tick", SECOND, lambda at: looks.append(at) or [CronMessage(A, after(60))]
        )
        await all_idle()
        await face.advance(1_000)
        before = trio.current_time()
        await handle.close()
        await handle.close()
        assert trio.current_time() == before
    assert len(looks) == 2
    assert len(await keys(queue)) == 1


async def test_d50_close_does_not_wait_longer_than_five_seconds(queue, cron, face) -> None:
    closed = []

    async def close(handle) -> None:
        await handle.close()
        closed.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        handle = await cron.install(nursery, ONE, "tick", SECOND, lambda _: [])
        handle._scope.shield = True
        handle._ended = type(
            "Never", (), {"wait": staticmethod(trio.sleep_forever), "set": lambda self: None}
        )()
        nursery.start_soon(close, handle)
        await all_idle()
        began = trio.current_time()
        for ms, ended in ((4_999, 0), (1, 1)):
            await face.advance(ms)
            await all_idle()
            assert len(closed) == ended
    assert closed == [pytest.approx(began + 5)]


async def test_d50_the_task_ends_with_its_nursery(queue, cron) -> None:
    async with trio.open_nursery() as nursery:
        await cron.install(nursery, ONE, "tick", SECOND, lambda _: [])
        nursery.cancel_scope.cancel()


async def test_d50_an_error_of_the_generator_is_logged_and_the_next_run_happens(
    queue, cron, face, caplog
) -> None:
    runs = []

    def generate(at: datetime) -> list[CronMessage[Letter]]:
        runs.append(at)
        if len(runs) == 2:
            raise RuntimeError("no figures today")
        return [CronMessage(Letter("x", len(runs)), after(60 + len(runs)))]

    async with trio.open_nursery() as nursery:
        handle = await cron.install(nursery, ONE, "tick", SECOND, generate)
        for _ in range(2):
            await all_idle()
            await face.advance(1_000)
        await handle.close()
    assert len(await keys(queue)) == 2
    assert "no figures today" in caplog.text


async def run_nodes(
    face, clocks, install: Callable, *, until: datetime, step_ms: int
) -> list[tuple[str, datetime]]:
    """What a consumer gets while nodes with these clocks run a schedule: payloads, and when they came."""
    got = []
    queues = [await DelayedQueue.create(face.methods, "mail", Letter, clock=clock) for clock in clocks]
    async with trio.open_nursery() as nursery:
        for queue in queues:
            await install(CronService(queue), nursery)
        while now() < until:
            await face.advance(step_ms)
            for each in (batch := await queues[0].try_poll_many(100)).messages:
                got.append((each.payload.to, each.timestamp))
            await batch.acknowledge()
        nursery.cancel_scope.cancel()
    return got


@pytest.mark.parametrize(
    "shifts",
    [
        *(pytest.param(each, marks=pytest.mark.tier2) for each in ((0, 0), (-5_000, 5_000))),
        (5_000, -5_000, 0),
    ],
)
async def test_d50_d51_several_nodes_make_one_message_a_tick_also_with_clocks_that_differ(
    face, shifts
) -> None:
    async def install(service: CronService, nursery) -> None:
        await service.install_periodic_tick(
            nursery, "tick", timedelta(minutes=1), lambda at: Letter(f"{at:%H:%M:%S}")
        )

    until = datetime(2023, 11, 14, 22, 18, 0, tzinfo=UTC)
    got = await run_nodes(face, [ShiftedClock(by) for by in shifts], install, until=until, step_ms=1_000)
    assert [to for to, _ in got] == [f"22:{minute}:00" for minute in range(14, 19)]
    assert all(f"{at:%H:%M:%S}" == to for to, at in got)


async def test_d51_a_node_that_begins_late_with_a_slow_clock_makes_no_second_message(face) -> None:
    fast, slow = [
        await DelayedQueue.create(face.methods, "mail", Letter, clock=ShiftedClock(by)) for by in (0, -5_000)
    ]
    minute = timedelta(minutes=1)
    async with trio.open_nursery() as nursery:
        await CronService(fast).install_periodic_tick(
            nursery, "tick", minute, lambda at: Letter(f"{at:%H:%M}")
        )
        await face.advance(40_000)  # 22:14:00
        assert await take_all(fast) != []
        await face.advance(2_000)
        await CronService(slow).install_periodic_tick(
            nursery, "tick", minute, lambda at: Letter(f"{at:%H:%M}")
        )
        for _ in range(40):
            await face.advance(1_000)
            assert await fast.try_poll() is None
        nursery.cancel_scope.cancel()


async def test_a_period_of_a_second_misses_no_tick(face) -> None:
    async def install(service: CronService, nursery) -> None:
        await service.install_periodic_tick(nursery, "tick", SECOND, lambda at: Letter(f"{at:%M:%S}"))

    until = datetime(2023, 11, 14, 22, 13, 40, tzinfo=UTC)
    got = await run_nodes(face, [TrioClock(), ShiftedClock(300)], install, until=until, step_ms=100)
    assert [to for to, _ in got] == [f"13:{second}" for second in range(31, 41)]


async def test_d43_nodes_of_an_old_and_a_new_schedule_leave_the_ticks_of_the_one_that_goes_on(face) -> None:
    """As during an update of a program: each removes the other's messages as long as both run."""
    source = face.methods
    queue = await DelayedQueue.create(source, "mail", Letter, clock=TrioClock())
    async with trio.open_nursery() as nursery:
        for period in (timedelta(minutes=4), timedelta(minutes=3)):
            service = CronService(DelayedQueue(source, "mail", Letter, clock=TrioClock()))
            handle = await service.install_periodic_tick(nursery, "tick", period, lambda at: A)
            if period == timedelta(minutes=4):
                old = handle
        await all_idle()
        for _ in range(3):
            await face.advance(30_000)
        await old.close()
        await face.advance(45_000)
        config = CronConfigHash.of_periodic(timedelta(minutes=3))
        assert await keys(queue) == [key_of(config, "tick", datetime(2023, 11, 14, 22, 18, tzinfo=UTC))]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "begin",
    [datetime(2025, 11, 1, 12, tzinfo=UTC), datetime(2025, 3, 8, 12, tzinfo=UTC)],
    ids=["back", "forward"],
)
async def test_d51_one_message_a_day_when_the_clocks_change(face, begin) -> None:
    zone = ZoneInfo("America/New_York")
    schedule = CronDailySchedule((time(1, 30), time(2, 30)), "America/New_York", interval=HOUR)

    async def install(service: CronService, nursery) -> None:
        await service.install_daily_schedule(
            nursery, "report", schedule, lambda at: Letter(f"{at.astimezone(zone):%m-%d}")
        )

    days = 2  # the clocks change in the first night
    await face.advance(epoch_ms(begin) - T0)
    until = begin + timedelta(days=days)
    got = await run_nodes(
        face, [ShiftedClock(-5_000), ShiftedClock(5_000)], install, until=until, step_ms=1_800_000
    )
    expected = [f"{(begin + timedelta(days=n)):%m-%d}" for n in range(1, days + 1)]
    assert [to for to, _ in got] == [day for day in expected for _ in range(2)]
    assert len({at for _, at in got}) == 2 * days
    await all_idle()
