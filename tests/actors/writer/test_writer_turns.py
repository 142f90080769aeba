"""Steps of long work and the calls of others: neither waits for more than one batch of the other."""

import msgspec
import pytest
import trio

from forq_trio.model import limits
from forq_trio.model.commands import DropPages, OpenConsumer, Publish, StagePage
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.publishing.types import Stage, StagedPart
from support.actors import elapse, running_writer
from support.words import Pending, send

STEP = DropPages("q", "nobody")


def kinds(engine):
    return [[type(command).__name__ for command in batch.commands] for batch in engine.batches]


async def test_a_step_of_long_work_waits_for_one_batch_of_others(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        step = Pending(nursery, writer, STEP)
        other = Pending(nursery, writer, send())
        await step.finished()
        assert other.outcome is not None
        assert kinds(engine) == [["Produce"], ["DropPages"]]


async def test_it_does_not_wait_twice(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        engine.after_answers = lambda: writer.post(send())
        step = Pending(nursery, writer, STEP)
        Pending(nursery, writer, send())
        await step.finished()
        engine.after_answers = lambda: None
        assert kinds(engine)[:2] == [["Produce"], ["Produce", "DropPages"]]


async def test_beside_others_a_batch_has_one_short_step(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        await writer.execute(send())
        steps = [Pending(nursery, writer, STEP) for _ in range(2)]
        for step in steps:
            await step.finished()
        assert kinds(engine) == [["Produce"], ["DropPages"], ["DropPages"]]
        assert all(batch.shared for batch in engine.batches)
        engine.batches.clear()
        await elapse(limits.STEP_SHARE_SECONDS)
        steps = [Pending(nursery, writer, STEP) for _ in range(2)]
        for step in steps:
            await step.finished()
        assert kinds(engine) == [["DropPages", "DropPages"]]
        assert not engine.batches[0].shared


async def test_a_pipeline_alone_does_not_count_as_others(engine, autojump_clock) -> None:
    part = StagedPart(msgspec.msgpack.encode([NewMessage("x")] * 50), 50, 50)
    async with running_writer(engine) as writer:
        await elapse(limits.STEP_SHARE_SECONDS)
        engine.batches.clear()
        await writer.execute(OpenConsumer("q", "spark"))
        await writer.execute(StagePage("q", "s", 0, (part,)))
        await writer.execute(Publish("app", 1, (Stage("q", "s", 1),)))
        await writer.execute(STEP)
        assert engine.batches
        assert not any(batch.shared for batch in engine.batches)


async def test_beside_very_many_calls_a_step_is_long(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        for _ in range(limits.STEP_SHARE_CALLS_MAX):
            Pending(nursery, writer, send())
        await Pending(nursery, writer, STEP).finished()
        assert [(len(batch.commands), batch.shared) for batch in engine.batches] == [(64, False), (1, True)]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # the model moves everything at once
async def test_what_is_published_moves_in_every_second_batch_beside_others(engine, autojump_clock) -> None:
    parts = [StagedPart(msgspec.msgpack.encode([NewMessage("x")] * 50), 50, 50)] * 3
    async with running_writer(engine) as writer:
        await writer.execute(StagePage("q", "s", 0, tuple(parts)))
        await elapse(limits.STEP_SHARE_SECONDS)
        engine.batches.clear()
        engine.after_answers = lambda: writer.post(send(queue="other"))
        await writer.execute(Publish("app", 1, (Stage("q", "s", 1),)))
        while writer.snapshot().staging.in_progress:
            await writer.announced.moved.wait()
        engine.after_answers = lambda: None
        assert writer.snapshot().counts["q"].ready == 150
        moves = [batch.moves_staged for batch in engine.batches]
        assert moves[:6] == [True, False, True, False, True, False]
