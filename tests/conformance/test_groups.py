"""Groups take turns in a FIFO queue, and each keeps its own order."""

from contextlib import closing

import pytest

from forq_trio.model.commands import Configure, Nack, OfferMany, Produce, ProduceEach, ProduceMany, SweepKind
from forq_trio.model.keys.types import Offering
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.setting_values import Order, Overflow
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import EngineSettings
from oracle.engine import MemoryEngine
from support import effort

from .script import (
    T0,
    ack,
    claim,
    configure,
    contents,
    do,
    drain,
    fail,
    look,
    nack,
    receipts,
    receive,
    receive_one,
    redrive,
    run,
    send,
    send_dead_letter,
    sweep,
)


def send_all(engine, names, *, queue="q", **fields):
    """One message for each name, the letters before its number being its group ("-": it has none)."""
    messages = [
        NewMessage(name, group=None if name.startswith("-") else name.rstrip("0123456789"), **fields)
        for name in names.split()
    ]
    return do(engine, ProduceMany(queue, tuple(messages)))


def test_a_noisy_group_does_not_starve_the_others(engine):
    send_all(engine, "noisy1 noisy2 noisy3 noisy4 b1 c1 b2")
    assert drain(engine) == ["noisy1", "b1", "c1", "noisy2", "b2", "noisy3", "noisy4"]


def test_one_that_comes_later_joins_the_next_round(engine):
    send_all(engine, " ".join(f"noisy{n}" for n in range(1, 7)))
    assert contents(receive(engine, 3)) == ["noisy1", "noisy2", "noisy3"]
    send_all(engine, "late1 late2")
    assert drain(engine) == ["noisy4", "late1", "noisy5", "late2", "noisy6"]


def test_each_group_keeps_its_order(engine):
    send_all(engine, "a1 a2 b1 a3 b2 b3 a4 b4")
    order = drain(engine)
    for group in "ab":
        assert [name for name in order if name.startswith(group)] == [f"{group}{n}" for n in range(1, 5)]


def test_messages_without_a_group_take_turns_like_one(engine):
    send_all(engine, "a1 -1 -2 -3 a2 a3")
    assert drain(engine) == ["a1", "-1", "-2", "a2", "-3", "a3"]


def test_what_was_there_before_the_first_group_goes_on_first_in_its_order(engine):
    send_all(engine, "-1 -2 -3")
    send_all(engine, "a1 -4 a2 -5")
    order = drain(engine)
    assert [name for name in order if name.startswith("-")] == ["-1", "-2", "-3", "-4", "-5"]
    assert order.index("a1") <= 1


def test_without_groups_a_queue_stays_as_it_was(engine):
    send_all(engine, "-1 -2 -3")
    assert drain(engine) == ["-1", "-2", "-3"]


def test_priority_goes_first_and_turns_are_taken_within(engine):
    send_all(engine, "a1 a2 b1", priority=1)
    send_all(engine, "a3 a4 b2", priority=2)
    assert drain(engine) == ["a3", "b2", "a4", "a1", "b1", "a2"]


def test_a_message_given_back_is_the_next_of_its_group_again(engine):
    send_all(engine, "a1 a2 a3 b1 b2")
    first, receipt = receive_one(engine)
    assert contents(receive(engine)) == ["b1"]
    assert nack(engine, receipt, 0)
    assert first.content == "a1"
    assert drain(engine) == ["a1", "a2", "b2", "a3"]


def test_a_group_that_waits_for_a_delay_goes_behind_its_own(engine):
    send_all(engine, "a1 a2 b1")
    (delivery,) = receive(engine)
    assert do(engine, Nack("q", receipts([delivery]), 10)) == (True,)
    assert drain(engine) == ["b1", "a2"]
    assert drain(engine, now=T0 + 10) == ["a1"]


def test_a_group_whose_messages_are_all_gone_starts_anew(engine):
    send_all(engine, "a1 a2 a3 b1")
    assert drain(engine) == ["a1", "b1", "a2", "a3"]
    send_all(engine, "b2 b3 a4")
    assert drain(engine) == ["b2", "a4", "b3"]


def test_one_that_comes_and_goes_does_not_starve_who_waits(engine):
    """Its messages are all gone each time it sends the next; it had its turn in the round all the same."""
    send_all(engine, "b1")
    receive(engine)
    send_all(engine, "b2")
    got = []
    for turn in range(3):
        send_all(engine, f"a{turn}")
        delivery, receipt = receive_one(engine)
        got.append(delivery.content)
        if delivery.content.startswith("a"):
            assert ack(engine, receipt)
    assert "b2" in got


def test_several_at_once_are_taken_in_turns_too(engine):
    send_all(engine, "a1 a2 a3 b1 b2 c1")
    assert contents(receive(engine, 6)) == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_a_delivery_and_a_reader_name_the_group(engine, reader):
    named = send(engine, group="g")
    unnamed = send(engine)
    assert reader.message("q", named.id).group == "g"
    assert reader.message("q", unnamed.id).group is None
    assert [delivery.group for delivery in receive(engine, 2)] == ["g", None]


def test_a_group_means_nothing_in_another_queue(engine):
    send_all(engine, "a1 a2 a3")
    send_all(engine, "a4 b1", queue="other")
    assert drain(engine, queue="other") == ["a4", "b1"]


def test_dead_letters_keep_their_group_and_come_in_order_of_arrival(engine):
    send_all(engine, "a1 a2 b1")
    for _ in range(3):
        fail(engine)
    sweep(engine, SweepKind.FAILED)
    first = receive(engine, queue="q-dlq")
    assert [(delivery.content, delivery.group) for delivery in first] == [("a1", "a")]


def test_a_redriven_message_has_its_old_place(engine):
    produced = send_dead_letter(engine, "a0", group="a")
    send_all(engine, "b1 b2 a1 a2")
    assert redrive(engine, produced.id) == (True,)
    assert look(engine, produced.id).group == "a"
    assert drain(engine)[0] == "a0"


def test_a_queue_that_was_lifo_takes_turns_from_the_first_group_on(engine):
    configure(engine, order=Order.LIFO)
    send_all(engine, "a1 b1")
    assert drain(engine) == ["b1", "a1"]
    configure(engine, order=Order.FIFO)
    send_all(engine, "a2 a3 b2")
    assert drain(engine) == ["a2", "b2", "a3"]


def test_a_group_of_the_same_batch_is_in_turn(engine):
    batch = [Produce("q", NewMessage(name, group=name[0])) for name in ("a1", "a2", "b1")]
    run(engine, *batch)
    assert drain(engine) == ["a1", "b1", "a2"]


HISTORIES = effort.count("order_histories")


@effort.many_trials
def test_batches_with_the_first_groups_of_queues_and_messages_without_one(engine, rng):
    """What is sent before the first group, in its batch or before it, and behind it: in the order of the model."""
    with closing(MemoryEngine(EngineSettings())) as model:
        for history in range(HISTORIES):
            queues = [f"q{history}-{number}" for number in range(3)]
            batches = [
                *stored_before(rng, queues),
                some_sends(rng, queues, (None, None, "a", "b")),
                [
                    *some_sends(rng, queues, (None, "a", "b", "c")),
                    *some_offers(rng, queues),
                    *some_sends(rng, queues, (None, "b")),
                ],
                [claim(2, queue=queues[0])],
            ]
            for each in (engine, model):
                for commands in batches:
                    run(each, *commands)
            for queue in queues:
                got, expected = (drain(each, queue=queue, now=T0 + 10) for each in (engine, model))
                assert got == expected, batches


def stored_before(rng, queues):
    """Batches after which no queue is grouped; some have a bound, or messages with a group."""
    lifo = rng.sample(queues, rng.randrange(2))
    yield [Configure(queue, SettingsChange(order=Order.LIFO)) for queue in lifo]
    yield some_sends(rng, lifo, (None, "a", "b")) if lifo else []
    yield [Configure(queue, SettingsChange(order=Order.FIFO)) for queue in lifo]
    yield some_sends(rng, rng.sample(queues, rng.randint(1, 3)), (None,))
    yield [claim(rng.randint(1, 3), queue=queue) for queue in rng.sample(queues, rng.randrange(3))]
    full = Overflow.DROP_OLDEST if rng.randrange(2) else Overflow.REJECT
    yield [
        Configure(queue, SettingsChange(max_messages=rng.randint(3, 6), overflow=full))
        for queue in rng.sample(queues, rng.randrange(2))
    ]


def some_message(rng, groups):
    delay = rng.choice((None, None, None, 5))
    return NewMessage(
        f"{rng.random()}", group=rng.choice(groups), priority=rng.choice((1, 1, 2)), delay_ms=delay
    )


def some_sends(rng, queues, groups):
    """Single sends, then many at once, to queues in turns."""
    single = [Produce(rng.choice(queues), some_message(rng, groups)) for _ in range(rng.randrange(12))]
    many = [
        ProduceMany(queue, tuple(some_message(rng, groups) for _ in range(rng.randint(1, 4))))
        for queue in rng.sample(queues, rng.randrange(len(queues)))
    ]
    across = tuple((rng.choice(queues), some_message(rng, groups)) for _ in range(rng.randint(1, 6)))
    return [*single, *many, *([ProduceEach(across)] if rng.randrange(2) else [])]


def some_offers(rng, queues):
    return [
        OfferMany(
            rng.choice(queues),
            tuple(
                Offering(key=f"k{rng.randrange(9)}", content=f"{rng.random()}", group=rng.choice((None, "a")))
                for _ in range(3)
            ),
        )
        for _ in range(rng.randrange(3))
    ]


@pytest.mark.parametrize("quiet", [1, 3])
def test_everyone_gets_one_before_a_group_gets_its_next(engine, quiet):
    """A group with a backlog, and others that come and go."""
    send_all(engine, " ".join(f"noisy{n}" for n in range(1, 30)))
    for turn in range(1, 9):
        send_all(engine, " ".join(f"{'xyz'[n]}{turn}" for n in range(quiet)))
        names = []
        for _ in range(quiet + 1):
            delivery, receipt = receive_one(engine)
            names.append(delivery.content.rstrip("0123456789"))
            assert ack(engine, receipt)
        assert sorted(names) == sorted(["noisy", *"xyz"[:quiet]])
