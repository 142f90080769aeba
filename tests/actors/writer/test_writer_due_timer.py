"""One timer for delays, back-off and leases: exact to the millisecond, and silent when nothing is due."""

import pytest
import trio

from forq_trio.model import limits
from forq_trio.model.messages.types import Delivery
from support.actors import T0, elapse, running_writer
from support.words import Pending, ack, claim, contents, send

DAY_SECONDS = 86_400


async def next_delivery(writer) -> tuple[Delivery, int]:
    """What a waiting receiver gets next, and when: in ms of simulated time."""
    while not (deliveries := await writer.execute(claim(limits.WAIT_MS_MAX))):
        pass
    return deliveries[0], round(trio.current_time() * 1_000)


@pytest.mark.parametrize("delay_ms", [1, 30_001, 3_600_000])
async def test_f2_a_delayed_message_comes_when_it_is_due(engine, autojump_clock, delay_ms) -> None:
    async with running_writer(engine) as writer:
        await writer.execute(send(process_after=T0 + delay_ms))
        assert (await next_delivery(writer))[1] == delay_ms


async def test_an_earlier_delay_moves_the_timer_forward(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        await writer.execute(send("late", process_after=T0 + 20_000))
        receiver = Pending(nursery, writer, claim(limits.WAIT_MS_MAX))
        await elapse(1)
        await writer.execute(send("early", process_after=T0 + 5_000))
        assert contents(await receiver.finished()) == ["early"]
        assert round(receiver.at * 1_000) == 5_000


async def test_an_idle_writer_runs_nothing_for_a_day(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        await elapse(1)
        before = len(engine.batches)
        await elapse(DAY_SECONDS)
        assert len(engine.batches) == before
        assert writer.parked.total == 0


async def test_parked_receivers_cost_no_batch(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        receivers = [Pending(nursery, writer, claim(30_000)) for _ in range(100)]
        await elapse(1)
        before = len(engine.batches)
        for receiver in receivers:
            assert await receiver.finished() == ()
        assert len(engine.batches) == before


async def test_many_that_fall_due_at_once_all_come(engine, autojump_clock, monkeypatch) -> None:
    """More than one batch may settle: the rest follows at once, not at the next due time."""
    monkeypatch.setattr(limits, "DUE_BATCH_MAX", 7)
    async with running_writer(engine) as writer:
        for _ in range(50):
            await writer.execute(send(process_after=T0 + 1_000))
        await elapse(1.001)
        assert writer.snapshot().counts["q"].ready == 50
        deliveries = await writer.execute(claim(most=50))
        assert len(deliveries) == 50
        assert all(await writer.execute(ack(*deliveries)))


async def test_a_clock_set_back_only_delays(engine, autojump_clock) -> None:
    """Wall time may step backwards; the writer looks at it again and loses nothing."""

    class SteppingClock:
        step_ms = 0

        def now_ms(self) -> int:
            return T0 + round(trio.current_time() * 1_000) + self.step_ms

    clock = SteppingClock()
    async with running_writer(engine, clock=clock) as writer:
        await writer.execute(send(process_after=T0 + 1_000))
        clock.step_ms = -60_000
        await elapse(60.5)
        assert writer.snapshot().counts["q"].delayed == 1
        await elapse(0.5 + limits.CLOCK_CHECK_SECONDS_MAX)
        assert writer.snapshot().counts["q"].ready == 1


async def test_a_clock_set_forward_is_noticed(engine, autojump_clock) -> None:
    class SteppingClock:
        step_ms = 0

        def now_ms(self) -> int:
            return T0 + round(trio.current_time() * 1_000) + self.step_ms

    clock = SteppingClock()
    async with running_writer(engine, clock=clock) as writer:
        await writer.execute(send(process_after=T0 + 3_600_000))
        clock.step_ms = 3_600_000
        await elapse(limits.CLOCK_CHECK_SECONDS_MAX + 0.001)
        assert writer.snapshot().counts["q"].ready == 1
