"""What the history and the lifecycle events say of messages with keys."""

from contextlib import closing

import pytest

from forq_trio.model.commands import AckRevision, Claim, Purge
from forq_trio.storage.engine import END_TO_END, HANDLING, EngineSettings
from support.batches import read_events

from .keyed import ack_revision, drop, offer, reschedule
from .script import T0, ack, do, nack, receive_one, run
from .test_history import found, lines

ON = EngineSettings(history=True, events=True)


@pytest.fixture
def engine(make_engine):
    return make_engine(ON)


def told(engine, *members):
    with closing(engine.open_reader()) as reader:
        return [tuple(event[name] for name in ("kind", *members)) for event in read_events(reader)]


def test_a_finished_message_has_its_key_and_kind(engine):
    offered = offer(engine, "größe/1", kind="mail")
    _, receipt = receive_one(engine)
    assert ack(engine, receipt)
    (message,) = found(engine).messages
    assert (message.id, message.key, message.kind) == (offered.id, "größe/1", "mail")
    (line,) = lines(engine)
    assert (line["key"], line["kind"]) == ("größe/1", "mail")


def test_a_finished_dead_letter_has_the_key_that_it_had(engine):
    offer(engine, max_attempts=1)
    _, receipt = receive_one(engine)
    nack(engine, receipt, 0)
    _, receipt = receive_one(engine, queue="q-dlq")
    assert ack(engine, receipt, queue="q-dlq")
    (message,) = found(engine, queue="q-dlq").messages
    assert (message.key, message.kind) == ("k", "")


@pytest.mark.parametrize(
    "end",
    [
        lambda engine, receipt, offered: ack(engine, receipt),
        lambda engine, receipt, offered: ack_revision(engine, offered.revision),
        lambda engine, receipt, offered: drop(engine),
        lambda engine, receipt, offered: do(engine, Purge("q")),
    ],
    ids=["ack", "ack_revision", "drop", "purge"],
)
def test_what_waits_is_no_part_of_a_message_that_ends(engine, end):
    offered = offer(engine, content="12345")
    _, receipt = receive_one(engine)
    assert offer(engine, content="1234567", mode="onceMore").once_more
    end(engine, receipt, offered)
    finished = found(engine).messages
    assert [(each.content, each.bytes) for each in finished] == [("12345", 5)]
    assert engine.snapshot().history_of("q") == (1, 5)
    last = [event for event in told(engine, "bytes") if event[0] in ("acked", "deleted")]
    assert [size for _, size in last] == [5]


def test_d33_an_ack_by_its_revision_is_timed_like_any_ack(engine):
    """It may come at any time: also of a message that nobody has received."""
    first, second = offer(engine, "k", now=T0), offer(engine, "l", now=T0)
    do(engine, Claim("q", 1, 60_000), T0 + 5)
    acks = [AckRevision("q", key, "", each.revision) for key, each in (("k", first), ("l", second))]
    result = run(engine, *acks, now=T0 + 8)
    assert result.outcomes == [True, True]
    assert result.durations == {(END_TO_END, "q"): [8, 8], (HANDLING, "q"): [3]}


def test_what_goes_on_is_told_as_a_new_message(engine):
    offer(engine)
    _, receipt = receive_one(engine, now=T0)
    offer(engine, content="next", mode="onceMore", now=T0 + 1)
    assert ack(engine, receipt, now=T0 + 2)
    assert told(engine, "at", "bytes") == [
        ("produced", T0, 1),
        ("delivered", T0, 1),
        ("acked", T0 + 2, 1),
        ("produced", T0 + 2, 4),
    ]


def test_a_change_is_told_with_what_the_message_has_become(engine):
    offered = offer(engine)
    _, receipt = receive_one(engine, now=T0)
    assert offer(engine, content="changed", now=T0 + 5).outcome == "updated"
    assert not ack(engine, receipt, now=T0 + 6)
    assert offer(engine, content="changed", now=T0 + 7).outcome == "ignored"
    reschedule(engine, T0 + 1_000, now=T0 + 8)
    members = ("at", "sequence", "attempt", "receivedAt", "bytes", "reason", "durationMs")
    assert told(engine, *members)[2:] == [
        ("updated", T0 + 5, offered.sequence, 1, T0 + 5, 7, None, None),
        ("updated", T0 + 8, offered.sequence, 0, T0 + 5, 7, None, None),
    ]
