"""The delay before the next attempt: the server's list, a queue's list, or a queue's formula (F5)."""

import pytest

from forq_trio.model.commands import NackById
from forq_trio.model.queues.setting_values import ExponentialBackOff

from .script import T0, configure, do, has_no_message, look, nack, receive_one, send, woken_by


def delays(engine, attempts, queue="q"):
    """How long one message is put off after each of its attempts."""
    produced = send(engine, queue=queue, max_attempts=attempts + 1)
    now, found = T0, []
    for _ in range(attempts):
        assert nack(engine, receive_one(engine, queue=queue, now=now)[1], queue=queue, now=now)
        found.append(look(engine, produced.id, queue).process_after - now)
        now += found[-1]
    return found


def test_a_list_goes_on_with_its_last_step(engine):
    configure(engine, back_off=(7, 0, 50))
    assert delays(engine, 5) == [7, 0, 50, 50, 50]


def test_a_formula_grows_to_its_bound(engine):
    configure(engine, back_off=ExponentialBackOff(initial_ms=100, factor=2.5, max_ms=1_000))
    assert delays(engine, 5) == [100, 250, 625, 1_000, 1_000]


def test_a_formula_that_grows_slowly_reaches_its_bound_too(engine):
    configure(engine, back_off=ExponentialBackOff(initial_ms=1_000, factor=1.05, max_ms=140_000))
    assert delays(engine, 105)[99:] == [125_239, 131_501, 138_076, 140_000, 140_000, 140_000]


def test_the_random_share_of_a_formula_stays_within_its_bounds(engine):
    configure(engine, back_off=ExponentialBackOff(initial_ms=1_000, factor=1, max_ms=1_000, jitter=0.5))
    found = delays(engine, 20)
    assert all(500 <= delay <= 1_000 for delay in found)
    assert len(set(found)) > 10


def test_forgetting_it_brings_the_default_back(engine):
    configure(engine, back_off=(7,))
    configure(engine, back_off=None)
    assert delays(engine, 2) == [1_000, 5_000]


def test_each_queue_has_its_own(engine):
    configure(engine, back_off=(7,))
    assert delays(engine, 1, "other") == [1_000]
    assert delays(engine, 1) == [7]


def test_it_holds_for_a_nack_by_id(engine):
    configure(engine, back_off=(7,))
    produced = send(engine)
    receive_one(engine)
    assert do(engine, NackById("q", produced.id))
    assert look(engine, produced.id).process_after == T0 + 7


def test_a_delay_of_the_nack_goes_before_it(engine):
    configure(engine, back_off=(7,))
    send(engine)
    assert nack(engine, receive_one(engine)[1], 3)
    assert has_no_message(engine, now=T0 + 2)
    receive_one(engine, now=T0 + 3)


@pytest.mark.parametrize("queue", ["q", "q_lifo"])
def test_it_ends_exactly_on_time(engine, queue):
    configure(engine, queue, back_off=(7,))
    send(engine, "again", queue=queue)
    assert nack(engine, receive_one(engine, queue=queue)[1], queue=queue)
    assert woken_by(engine, queue=queue, now=T0 + 6) == []
    assert woken_by(engine, queue=queue, now=T0 + 7) == ["again"]
