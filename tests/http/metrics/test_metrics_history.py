"""What the writer records: histories whose times are known, on simulated time, read back from the exposition."""

from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model.commands import Claim, ProduceMany, RedrivePolicy
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor
from forq_trio.writer_families import call_families, parked_families
from support.actors import SlowCommit, elapse, in_a_thread, recorded
from support.exposition import Samples, buckets, of_queue, own_samples
from support.words import LEASE_MS, Pending, ack, claim, nack, send

WAIT = "forq_message_wait_seconds"
END_TO_END = "forq_message_end_to_end_seconds"


def with_writer(writer: WriterActor, counters: Counters) -> Samples:
    return own_samples(counters, partial(parked_families, writer, counters), partial(call_families, writer))


def only_bucket(counters: Counters, name: str, queue: str = "q") -> tuple[float, float, float]:
    """The bucket that holds all values of a histogram, as (bound below, own bound], and their sum."""
    samples = own_samples(counters)
    found = buckets(samples, name, of_queue(queue))
    count = samples[f"{name}_count", of_queue(queue)]
    below = max((bound for bound, value in found.items() if value == 0), default=0.0)
    own = min(bound for bound, value in found.items() if value == count)
    return below, own, samples[f"{name}_sum", of_queue(queue)]


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, (0, 0.001)), (5, (2.5, 5)), (3_601, (3_600, float("inf")))]
)
async def test_a_wait_lands_in_its_bucket(engine, autojump_clock, seconds, expected) -> None:
    async with recorded(engine) as (writer, counters):
        await writer.execute(send())
        await elapse(seconds)
        await writer.execute(claim())
        assert only_bucket(counters, WAIT) == (*expected, seconds)


async def test_the_delay_is_no_wait_but_belongs_to_end_to_end(engine, autojump_clock) -> None:
    async with recorded(engine) as (writer, counters):
        await writer.execute(send(delay_ms=60_000))
        await elapse(62)
        (delivery,) = await writer.execute(claim())
        await elapse(1)
        await writer.execute(ack(delivery))
        assert only_bucket(counters, WAIT) == (1, 2.5, 2)
        assert only_bucket(counters, END_TO_END) == (60, 300, 63)


async def test_a_second_delivery_waits_from_when_it_may_be_claimed_again(engine, autojump_clock) -> None:
    async with recorded(engine) as (writer, counters):
        await writer.execute(send())
        (delivery,) = await writer.execute(claim())
        await writer.execute(nack(delivery, delay_ms=10_000))
        await elapse(13)
        (delivery,) = await writer.execute(claim())
        await writer.execute(ack(delivery))
        samples = own_samples(counters)
        assert samples[f"{WAIT}_count", of_queue("q")] == 2
        assert samples[f"{WAIT}_sum", of_queue("q")] == 3
        assert only_bucket(counters, END_TO_END) == (10, 30, 13)


async def test_who_waited_for_a_message_got_it_at_once(engine, autojump_clock) -> None:
    async with recorded(engine) as (writer, counters), trio.open_nursery() as nursery:
        receiver = Pending(nursery, writer, claim(wait_ms=30_000))
        await elapse(20)
        assert with_writer(writer, counters)["forq_queue_waiting_consumers", of_queue("q")] == 1
        await writer.execute(send())
        assert await receiver.finished()
        assert only_bucket(counters, WAIT) == (0, 0.001, 0)
        assert ("forq_queue_waiting_consumers", of_queue("q")) not in with_writer(writer, counters)


async def test_messages_of_one_batch_are_each_measured(engine, autojump_clock) -> None:
    async with recorded(engine) as (writer, counters):
        await writer.execute(ProduceMany("q", tuple(NewMessage(str(number)) for number in range(40))))
        await elapse(2)
        deliveries = await writer.execute(claim(most=40))
        await writer.execute(ack(*deliveries))
        samples = own_samples(counters)
        for name in (WAIT, END_TO_END):
            assert samples[f"{name}_count", of_queue("q")] == 40
            assert samples[f"{name}_sum", of_queue("q")] == 80


async def test_commits_are_counted_with_the_calls_that_shared_them(engine, mock_clock) -> None:
    async with recorded(engine, policy=in_a_thread()) as (writer, counters), trio.open_nursery() as nursery:
        commits, calls_before = counters.commits.count, counters.commits.calls.all.sum
        slow = SlowCommit(engine)
        calls = [Pending(nursery, writer, send("alone"))]
        await slow.reached()
        calls += [Pending(nursery, writer, send(f"together {number}")) for number in range(3)]
        await wait_all_tasks_blocked()
        assert with_writer(writer, counters)["forq_inbox_calls", ()] == 3
        slow.go_on()
        for call in calls:
            await call.finished()
        samples = with_writer(writer, counters)
        assert samples["forq_inbox_calls", ()] == 0
        assert samples["forq_commit_batch_calls_count", ()] == commits + 2
        assert samples["forq_commit_batch_calls_sum", ()] == calls_before + 4
        assert samples["forq_commit_duration_seconds_count", ()] == commits + 2
        assert samples["forq_commit_duration_seconds_sum", ()] > 0


async def test_a_batch_without_work_for_the_database_is_no_commit(engine, autojump_clock) -> None:
    async with recorded(engine) as (writer, counters):
        before = counters.commits.count
        assert await writer.execute(claim()) == ()
        assert counters.commits.count == before


async def test_posts_that_found_no_room_are_in_the_inbox_too(engine, mock_clock) -> None:
    async with recorded(engine, policy=in_a_thread(), inbox_calls_max=2) as (writer, counters):
        slow = SlowCommit(engine)
        writer.post(send())
        await slow.reached()
        for _ in range(5):
            writer.post(send())
        assert with_writer(writer, counters)["forq_inbox_calls", ()] == 5
        slow.go_on()


async def test_messages_lost_to_a_full_dead_letter_queue_are_logged(engine, autojump_clock, caplog) -> None:
    """S4: a dead-letter queue that is full loses the message, and says so."""
    policy = RedrivePolicy(max_attempts=1, dead_letter_queue="buried", messages_max=1)
    async with recorded(engine) as (writer, counters):
        for content in ("moved", "lost", "lost too"):
            await writer.execute(send(content, dead_letter_queue=""))
        await writer.execute(claim(most=3, lease_ms=0))
        assert await writer.execute(Claim("q", 10, LEASE_MS, redrive_policy=policy)) == ()
        lost = [record for record in caplog.records if "dead_letters.lost" in record.getMessage()]
        assert [record.levelname for record in lost] == ["WARNING"]
        assert "queue='q' messages=2" in lost[0].getMessage()
        assert own_samples(counters)["forq_messages_cleanup_total", (("reason", "dlq_full"),)] == 2
