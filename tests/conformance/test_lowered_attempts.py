"""The bound on attempts is lowered below those that a message has had: nobody gets it once more."""

import pytest

from forq_trio.model.commands import Extend
from forq_trio.model.messages.types import REASON_MAX_ATTEMPTS, QueueCounts
from forq_trio.storage.engine import MOVED_TO_DLQ, EngineSettings, Event

from .script import claim, configure, contents, counted, do, fail, look, receipts, receive, run, send


def test_a_ready_message_goes_to_its_dead_letter_queue_when_a_claim_meets_it(engine):
    produced = send(engine, "tried")
    fail(engine, attempts=3)
    configure(engine, max_attempts=2)
    send(engine, "new")
    result = run(engine, claim(9))
    assert contents(result.outcomes[0]) == ["new"]
    assert Event(MOVED_TO_DLQ, "q", 1, "failed") in result.events
    message = look(engine, produced.id, "q-dlq")
    assert (message.source_attempts, message.failure_reason) == (3, REASON_MAX_ATTEMPTS)


def test_who_waits_for_it_there_is_served_by_the_next_batch(engine):
    send(engine, "tried")
    fail(engine, attempts=3)
    configure(engine, max_attempts=3)
    waiting = {"q-dlq": [claim(queue="q-dlq")]}
    assert run(engine, claim(), parked=waiting).next_due_ms is not None
    ((_, deliveries),) = run(engine, parked=waiting).served["q-dlq"]
    assert contents(deliveries) == ["tried"]


@pytest.mark.usefixtures("failed_stay")
def test_one_in_process_is_finished_and_not_tried_again(engine):
    send(engine)
    fail(engine, attempts=1)
    deliveries = receive(engine)
    configure(engine, max_attempts=1)
    do(engine, Extend("q", receipts(deliveries), 0))
    assert counted(engine)["q"] == QueueCounts(failed=1)


def test_a_bound_of_the_message_itself_counts_alone(engine):
    send(engine, max_attempts=4)
    fail(engine, attempts=3)
    configure(engine, max_attempts=1)
    assert receive(engine)[0].attempts == 4


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_servers_own_bound_counts_like_a_setting(make_engine, shuffle):
    engine = make_engine(EngineSettings(attempts_max=2))
    send(engine, "tried")
    configure(engine, max_attempts=9)
    fail(engine, attempts=2)
    configure(engine, max_attempts=None)
    assert do(engine, claim(9, shuffle=shuffle)) == ()
    assert counted(engine) == {"q": QueueCounts(), "q-dlq": QueueCounts(ready=1)}
