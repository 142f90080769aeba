"""A batch is bounded in messages and bytes: what does not fit is done in the next one, and nobody is forgotten."""

import pytest
import trio

from forq_trio.model import limits
from forq_trio.model.commands import Ack, Claim, Configure, Nack, Pause, ProduceMany
from forq_trio.model.errors import Stopping
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Receipt
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.model.queues.settings import SettingsChange
from support.actors import recorded, running_writer
from support.words import Pending, claim, contents, send

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # the model's batches leave nothing
HALF = "x" * (limits.COMMIT_BYTES_MAX // 2)


def some(count: int, content: str = "four") -> ProduceMany:
    return ProduceMany("q", (NewMessage(content),) * count)


async def test_one_commit_takes_no_more_bytes_than_its_cap(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        calls = [Pending(nursery, writer, send(HALF)) for _ in range(5)]
        await trio.testing.wait_all_tasks_blocked()
        assert [len(batch.commands) for batch in engine.batches if batch.commands] == [2, 1, 1, 1]
        assert sorted([(await call.finished()).sequence for call in calls]) == [1, 2, 3, 4, 5]


async def test_a_text_counts_as_the_bytes_it_may_have(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        for _ in range(3):
            Pending(nursery, writer, send("ö" * (limits.COMMIT_BYTES_MAX // 6)))
        await trio.testing.wait_all_tasks_blocked()
        assert [len(batch.commands) for batch in engine.batches if batch.commands] == [1, 1, 1]


async def test_a_call_above_the_cap_is_taken_alone(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        large = some(3, HALF)
        calls = [Pending(nursery, writer, large) for _ in range(2)]
        assert [len(await call.finished()) for call in calls] == [3, 3]
        assert [batch.commands for batch in engine.batches if large in batch.commands] == [[large], [large]]


async def test_small_calls_pass_large_ones(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        await writer.execute_each([some(1, HALF * 2)] * 5 + [send("small")])
        batches = [batch.commands for batch in engine.batches if batch.commands]
        assert [send("small") in commands for commands in batches] == [True, False, False, False, False]
        assert [len(commands) for commands in batches] == [2, 1, 1, 1, 1]


async def test_a_call_that_has_to_wait_for_the_next_batch_can_be_withdrawn(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        async with trio.open_nursery() as nursery:
            calls = [Pending(nursery, writer, send(HALF + str(number))) for number in range(3)]
            engine.after_answers = calls[2].cancel
        assert [delivery.sequence for delivery in await writer.execute(claim(most=9))] == [1, 2]


async def test_claims_share_what_a_batch_may_hand_out(engine, autojump_clock, monkeypatch) -> None:
    """Who gets nothing in the first batch gets it in the next ones, also one that would not wait."""
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        await writer.execute(some(9))
        monkeypatch.setattr(limits, "STEP_BYTES_MAX", 12)
        monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 12)
        calls = [Pending(nursery, writer, Claim("q", 3, None, wait_ms=wait)) for wait in (0, 0, 1_000)]
        outcomes = [await call.finished() for call in calls]
        assert [contents(outcome) for outcome in outcomes] == [["four"] * 3] * 3
        assert trio.current_time() < limits.DEFERRED_CLAIM_SECONDS


async def test_one_that_would_not_wait_is_told_soon_that_there_is_nothing(
    engine, autojump_clock, monkeypatch
) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        await writer.execute(some(6))
        monkeypatch.setattr(limits, "STEP_BYTES_MAX", 12)
        monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 12)

        def pause_once() -> None:
            engine.after_answers = lambda: None
            writer.post(Pause("q", True))

        engine.after_answers = pause_once
        calls = [Pending(nursery, writer, Claim("q", 3, None)) for _ in range(2)]
        assert sorted([len(await call.finished()) for call in calls]) == [0, 3]
        assert trio.current_time() <= limits.DEFERRED_CLAIM_SECONDS + 0.001


async def test_commands_that_did_not_run_are_run_next_and_delay_no_others(
    engine, autojump_clock, monkeypatch
) -> None:
    async with running_writer(engine) as writer, trio.open_nursery() as nursery:
        await writer.execute(some(9))
        deliveries = await writer.execute(claim(most=9))
        receipts = [Receipt.parse(delivery.receipt) for delivery in deliveries]
        monkeypatch.setattr(limits, "STEP_BYTES_MAX", 4)
        monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 4)
        engine.batches.clear()
        acks = [Pending(nursery, writer, Ack("q", (receipt,))) for receipt in receipts]
        sent = Pending(nursery, writer, send("not delayed"))
        assert [await call.finished() for call in acks] == [(True,)] * 9
        await sent.finished()
        assert any(command == send("not delayed") for command in engine.batches[0].commands)
        assert [len(batch.commands) for batch in engine.batches[:9]] == [10, 8, 7, 6, 5, 4, 3, 2, 1]


async def test_sends_that_did_not_run_are_bounded_in_bytes_too(engine, autojump_clock, monkeypatch) -> None:
    async with running_writer(engine) as writer:
        await writer.execute(some(20))
        await writer.execute(Configure("q", SettingsChange(max_messages=1, overflow=Overflow.DROP_OLDEST)))
        monkeypatch.setattr(limits, "EVICTED_MAX", 1)
        monkeypatch.setattr(limits, "COMMIT_BYTES_MAX", 10)
        engine.batches.clear()
        await writer.execute_each([send("12345678")] * 6)
        assert max(len(batch.commands) for batch in engine.batches) <= 3


async def test_a_stopping_writer_runs_them_first(engine, autojump_clock, monkeypatch) -> None:
    async with trio.open_nursery() as nursery:
        async with running_writer(engine) as writer:
            await writer.execute(some(4))
            deliveries = await writer.execute(claim(most=4))
            monkeypatch.setattr(limits, "STEP_BYTES_MAX", 4)
            monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 4)
            acks = [
                Pending(nursery, writer, Ack("q", (Receipt.parse(delivery.receipt),)))
                for delivery in deliveries
            ]
            await trio.testing.wait_all_tasks_blocked()
        assert [await call.finished() for call in acks] == [(True,)] * 4


async def test_a_settlement_goes_on_where_a_batch_stopped(engine, autojump_clock, monkeypatch) -> None:
    async with recorded(engine) as (writer, counters):
        await writer.execute(some(5))
        deliveries = await writer.execute(claim(most=5))
        receipts = tuple(Receipt.parse(delivery.receipt) for delivery in deliveries)
        monkeypatch.setattr(limits, "STEP_BYTES_MAX", 8)
        monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 8)
        engine.batches.clear()
        unknown = Receipt(99, 1)
        outcome = await writer.execute(Nack("q", (unknown, *receipts), reason="no"))
        assert outcome == (False, True, True, True, True, True)
        assert [len(command.receipts) for batch in engine.batches for command in batch.commands] == [6, 3, 1]
        assert counters.nack_reasons.latest(engine.batches[-1].now_ms, "q") == {"no": 5}


async def test_what_a_leaving_claim_gives_back_is_given_back_whole(
    engine, autojump_clock, monkeypatch
) -> None:
    async with running_writer(engine) as writer:
        await writer.execute(some(5))
        async with trio.open_nursery() as nursery:
            leaving = Pending(nursery, writer, claim(most=5))

            def leave() -> None:
                leaving.cancel()
                monkeypatch.setattr(limits, "STEP_BYTES_MAX", 8)
                monkeypatch.setattr(limits, "REWRITE_BYTES_MAX", 8)

            engine.before_commit = leave
        await trio.testing.wait_all_tasks_blocked()
        assert (writer.snapshot().counts["q"].ready, writer.snapshot().counts["q"].processing) == (5, 0)


async def test_commands_of_one_request_share_a_batch(engine, autojump_clock) -> None:
    async with running_writer(engine) as writer:
        engine.batches.clear()
        outcomes = await writer.execute_each([send("a"), send("b")])
        assert [outcome.sequence for outcome in outcomes] == [1, 2]
        assert [len(batch.commands) for batch in engine.batches] == [2]
        writer.stop()
        try:
            await writer.execute_each([send("c")])
        except Stopping:
            return
        raise AssertionError("a stopped writer took a command")
