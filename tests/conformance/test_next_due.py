"""When the writer must wake up: never later than something falls due; an engine may say earlier, but not for ever."""

import pytest

from forq_trio.model.commands import Extend, Nack, Release, Sweep, SweepKind
from forq_trio.model.messages.types import Receipt

from .script import DAY_MS, T0, ack, claim, fail, receive_one, run, send


def settled_next_due(engine, now=T0):
    """What the engine says once a batch ran at its own earlier guess: then it must be exact."""
    result = run(engine, now=now)
    while result.next_due_ms is not None and result.next_due_ms <= now:
        result = run(engine, now=now)
    return result.next_due_ms


def wakes_at(engine, due_ms, now=T0):
    """Whether following the engine's own word leads to `due_ms`, with no more than a few idle batches before."""
    for _ in range(4):
        said = run(engine, now=now).next_due_ms
        if said is None or said > due_ms:
            return False
        if said == due_ms:
            return True
        now = said
    return False


def test_nothing_stored_is_never_due(engine):
    assert run(engine).next_due_ms is None


def test_a_ready_message_is_due_when_it_expires(engine):
    send(engine)
    assert wakes_at(engine, T0 + DAY_MS)


def test_a_delayed_message_is_due_at_its_time(engine):
    send(engine, process_after=T0 + 50)
    assert wakes_at(engine, T0 + 50)


def test_a_leased_message_is_due_when_its_lease_ends(engine):
    send(engine)
    assert run(engine, claim(lease_ms=70)).next_due_ms == T0 + 70
    assert wakes_at(engine, T0 + 70)


def test_the_earliest_counts(engine):
    for ahead_ms in (90, 30, 60):
        send(engine, process_after=T0 + ahead_ms)
    assert wakes_at(engine, T0 + 30)
    assert wakes_at(engine, T0 + 60, now=T0 + 30)


@pytest.mark.usefixtures("failed_stay")
def test_a_failed_message_is_never_due(engine):
    send(engine)
    fail(engine)
    assert settled_next_due(engine, now=T0 + DAY_MS) is None


def test_an_acknowledged_message_is_due_no_more(engine):
    send(engine)
    assert ack(engine, receive_one(engine)[1])
    assert settled_next_due(engine, now=T0 + DAY_MS) is None


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(lambda receipt: Extend("q", (receipt,), 20), id="extend"),
        pytest.param(lambda receipt: Nack("q", (receipt,), 20), id="nack"),
        pytest.param(lambda receipt: Release("q", (receipt,), 20), id="release"),
    ],
)
def test_what_comes_back_is_due_again(engine, command):
    send(engine)
    _, receipt = receive_one(engine)
    assert run(engine, command(receipt)).next_due_ms <= T0 + 20
    assert wakes_at(engine, T0 + 20)


def test_a_message_given_back_is_due_when_it_expires(engine):
    send(engine)
    _, receipt = receive_one(engine, lease_ms=2 * DAY_MS)
    assert wakes_at(engine, T0 + 2 * DAY_MS)
    assert run(engine, Release("q", (receipt,))).next_due_ms <= T0 + DAY_MS
    assert wakes_at(engine, T0 + DAY_MS)


def test_a_message_nacked_after_its_time_to_live_is_due_at_once(engine):
    """F7: it expired while it was in process; the back-off does not put that off."""
    send(engine)
    _, receipt = receive_one(engine, lease_ms=2 * DAY_MS)
    run(engine, now=T0 + DAY_MS)
    assert run(engine, Nack("q", (receipt,)), now=T0 + DAY_MS + 5).next_due_ms <= T0 + DAY_MS + 5


def test_a_dead_letter_is_due_when_it_expires(engine):
    send(engine)
    fail(engine)
    run(engine, Sweep(SweepKind.FAILED))
    assert wakes_at(engine, T0 + 7 * DAY_MS)


def test_a_refused_command_makes_nothing_due(engine):
    assert run(engine, Extend("q", (Receipt(1, 1),), 20)).next_due_ms is None
