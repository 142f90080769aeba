"""Claims and due work do not walk past what is gone: where they begin is right in every process, whatever is undone."""

import random

import psycopg
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Configure, Extend, Purge
from forq_trio.model.messages.types import Delivery
from forq_trio.model.queues.setting_values import Order
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import Batch
from forq_trio.storage.relational.parts.heads import Heads
from support.actors import T0
from support.batches import do, run
from support.effort import EFFORT
from support.heads import check_heads, small_heads
from support.words import ack, claim, contents, nack, receipts, send

TRIALS = 3 if EFFORT.times is None else round(30 * EFFORT.times)
STEPS = 60


@pytest.fixture
def small(monkeypatch) -> None:
    small_heads(monkeypatch)


def command(draw: random.Random, queue: str, held: list[Delivery]):
    some, held[:] = held[:3], held[3:]
    return draw.choice(
        [
            lambda: send(queue=queue, priority=draw.choice([100, 100, 100, 50, 200])),
            lambda: send(queue=queue, group=draw.choice("ab")),
            lambda: send(queue=queue, delay_ms=draw.randrange(3_000)),
            lambda: send(queue=queue, ttl_ms=draw.randrange(1, 9_000)),
            lambda: claim(queue=queue, most=draw.randrange(1, 9), lease_ms=draw.choice([500, 5_000, 60_000])),
            lambda: claim(queue=queue, most=draw.randrange(1, 9), lease_ms=5_000),
            lambda: ack(*some, queue=queue),
            lambda: nack(*some, queue=queue, delay_ms=draw.choice([0, 0, 2_000])),
            lambda: Extend(queue, receipts(some), draw.choice([0, 9_000])),
            lambda: Configure(
                queue,
                SettingsChange(order=draw.choice(list(Order)), group_in_flight_max=draw.choice([1, None])),
            ),
            lambda: Purge(queue, limits.SEQUENCE_MAX) if draw.random() < 0.2 else send(queue=queue),
        ]
    )()


@pytest.mark.parametrize("seed", range(TRIALS))
@pytest.mark.usefixtures("small")
def test_every_process_knows_where_claims_begin_although_batches_are_undone(
    open_one, empty_tables, monkeypatch, seed
):
    def mistaken(_: Heads, queue: str) -> bool:
        raise AssertionError(f"ready messages of {queue} were out of reach")

    monkeypatch.setattr(Heads, "mistaken", mistaken)
    draw = random.Random(seed)
    engines = [open_one() for _ in range(3)]
    queues = ("a", "b", "c")
    held: dict[str, list[Delivery]] = {queue: [] for queue in queues}
    now_ms, heads = T0, 0
    for _ in range(STEPS):
        now_ms += draw.choice([0, 1, 300, 2_500])
        named = [draw.choice(queues) for _ in range(draw.randrange(1, 5))]
        commands = [command(draw, queue, held[queue]) for queue in named]
        if draw.random() < 0.3:
            undone = draw.choice(engines)
            undone.execute_batch(Batch(commands, now_ms))
            undone.roll_back()
        result = run(draw.choice(engines), *commands, now_ms=now_ms)
        for queue, outcome in zip(named, result.outcomes, strict=True):
            if isinstance(outcome, tuple):
                held[queue] += [each for each in outcome if isinstance(each, Delivery)]
        heads += check_heads(draw.sample(engines, draw.randrange(1, 4)), empty_tables)
    assert heads > STEPS / 2


def test_a_message_given_back_comes_before_the_backlog(open_one):
    a, b = open_one(), open_one()
    for number in range(6):
        do(a, send(str(number)))
    first, second = do(a, claim(most=2))
    do(b, nack(first, delay_ms=0))
    assert contents(do(a, claim(most=2))) == ["0", "2"]
    do(a, nack(second, delay_ms=0))
    do(b, send("urgent", priority=200))
    assert contents(do(b, claim(most=3))) == ["urgent", "1", "3"]


def test_a_process_that_knows_no_head_yet_gives_a_message_back(open_one):
    a = open_one()
    for number in range(3):
        do(a, send(str(number)))
    first, _ = do(a, claim(most=2))
    b = open_one()
    do(b, nack(first, delay_ms=0))
    assert contents(do(a, claim(most=2))) == ["0", "2"]


def test_what_a_batch_without_changes_read_is_forgotten(open_one, empty_tables):
    """It is not shipped, so the others would not know of the message that it set aside."""
    a, b = open_one(), open_one()
    do(a, send("0"))
    do(a, claim())
    do(b, send("1"))
    with psycopg.connect(empty_tables, autocommit=True) as connection:
        connection.execute("UPDATE forq.messages SET attributes = '{' WHERE content = '1'")
    assert run(a, claim()).set_aside
    do(b, send("2"))
    assert contents(do(a, claim(most=2))) == ["2"]
    check_heads([a, b], empty_tables)
    with psycopg.connect(empty_tables, autocommit=True) as connection:
        connection.execute("UPDATE forq.messages SET attributes = NULL")
    again = do(b, claim(most=3), now_ms=T0 + limits.SET_ASIDE_RETRY_MS)  # the leases of the others have ended
    assert contents(again) == ["0", "1", "2"]


def test_messages_that_somebody_made_ready_by_hand_are_found_when_nothing_else_is(open_one, empty_tables):
    a = open_one()
    for number in range(3):
        do(a, send(str(number)))
    do(a, claim(most=3))
    do(a, send("3"))
    with psycopg.connect(empty_tables, autocommit=True) as connection:
        connection.execute("UPDATE forq.messages SET status = 0 WHERE content = '0'")
        connection.execute("DELETE FROM forq.messages WHERE content = '3'")
    assert contents(do(a, claim())) == ["0"]


def test_a_head_that_is_too_long_ends_earlier(open_one, empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "HEAD_MESSAGES_MAX", 4)
    a, b = open_one(), open_one()
    for number in range(10):
        do(a, send(str(number)))
    deliveries = do(a, claim(most=10))
    do(a, nack(*deliveries, delay_ms=0))
    check_heads([a, b], empty_tables)
    assert len(a.tx.heads.committed["q"].ready) == 2
    assert contents(do(b, claim(most=10))) == [str(number) for number in range(10)]
