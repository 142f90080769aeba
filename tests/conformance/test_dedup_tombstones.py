"""Deduplication ids outlive their messages and are free again exactly on time (S7)."""

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    Configure,
    Delete,
    ForgetQueue,
    Produce,
    ProduceEach,
    ProduceMany,
    Purge,
    RelayMessages,
    SweepKind,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.outboxes.types import RelayedMessage
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import DEFERRED

from .engines import on_sql
from .script import T0, ack, configure, counted, do, receive_one, redrive, run, send, send_dead_letter, sweep

WINDOW_MS = 5_000


def send_unique(engine, *, now=T0, queue="q", window_ms=WINDOW_MS):
    return send(engine, queue=queue, now=now, deduplication_id="k", deduplication_window_ms=window_ms)


def held_for(engine, first, window_ms=WINDOW_MS, queue="q"):
    """Whether the id is taken for exactly this long."""
    last = send_unique(engine, now=T0 + window_ms - 1, queue=queue)
    again = send_unique(engine, now=T0 + window_ms, queue=queue)
    return last.duplicate and last.id == first.id and not again.duplicate


def acknowledge(engine):
    assert ack(engine, receive_one(engine)[1])


def purge(engine):
    assert do(engine, Purge("q")).count == 1


def expire(engine):
    run(engine, now=T0 + 10)


def sweep_everything(engine):
    acknowledge(engine)
    for kind in SweepKind:
        sweep(engine, kind, now=T0 + WINDOW_MS - 1)


@pytest.mark.parametrize("end", [acknowledge, purge, expire, sweep_everything])
def test_s7_the_id_outlives_the_message_and_is_free_on_time(engine, end):
    first = send(engine, deduplication_id="k", deduplication_window_ms=WINDOW_MS, ttl_ms=10)
    end(engine)
    assert held_for(engine, first)


def test_a_forgotten_queue_takes_its_ids_with_it(engine):
    send_unique(engine)
    elsewhere = send_unique(engine, queue="other")
    acknowledge(engine)
    assert do(engine, ForgetQueue("q"))
    again = send_unique(engine)
    assert not again.duplicate
    assert held_for(engine, again)
    assert send_unique(engine, queue="other", now=T0 + WINDOW_MS - 1).id == elsewhere.id


def test_a_queue_that_is_not_forgotten_remembers_its_ids(engine):
    first = send_unique(engine)
    assert do(engine, ForgetQueue("q")) is False
    assert held_for(engine, first)


def test_an_id_of_a_queue_that_is_forgotten_is_free_in_the_same_batch(engine):
    """What the batch read of it before is forgotten, too."""
    send_unique(engine)
    acknowledge(engine)
    message = NewMessage("x", deduplication_id="k", deduplication_window_ms=WINDOW_MS)
    relayed = RelayMessages("o", 0, (RelayedMessage(1, "q", message),))
    outcomes = run(engine, Produce("q", message), ForgetQueue("q"), relayed).outcomes
    assert outcomes[0].duplicate
    assert outcomes[1] is True
    assert counted(engine)["q"].ready == 1


@on_sql
@pytest.mark.parametrize("bound", ["PURGE_BATCH_MAX", "COMMIT_MESSAGES_MAX"])
def test_more_ids_than_a_batch_forgets(engine, monkeypatch, bound):
    for key in ("a", "b", "c"):
        send(engine, deduplication_id=key)
        acknowledge(engine)
    configure(engine, lease_ms=5)
    monkeypatch.setattr(limits, bound, 2)
    assert do(engine, ForgetQueue("q")) is DEFERRED
    assert engine.snapshot().settings["q"].lease_ms == 5
    assert do(engine, ForgetQueue("q")) is True
    assert engine.snapshot().settings == {}
    assert [send(engine, deduplication_id=key).duplicate for key in ("a", "b", "c")] == [False] * 3


def test_s7_ids_that_are_remembered_do_not_count_as_messages(engine):
    send_unique(engine)
    acknowledge(engine)
    assert engine.snapshot().counts == {"q": QueueCounts()}
    configure(engine, max_messages=1)
    assert not send(engine).duplicate


def test_the_window_is_the_queues_unless_the_message_says(engine):
    configure(engine, deduplication_window_ms=70)
    first = send_unique(engine, window_ms=None)
    assert held_for(engine, first, 70)
    configure(engine, "other", deduplication_window_ms=70)
    assert held_for(engine, send_unique(engine, queue="other"), queue="other")


def test_the_default_window(engine):
    first = send_unique(engine, window_ms=None)
    assert held_for(engine, first, limits.DEDUPLICATION_WINDOW_MS_DEFAULT)


def test_a_changed_window_holds_for_ids_that_come_later(engine):
    first = send_unique(engine, window_ms=None)
    configure(engine, deduplication_window_ms=1)
    assert held_for(engine, first, limits.DEDUPLICATION_WINDOW_MS_DEFAULT)


def test_a_setting_of_the_same_batch_counts(engine):
    message = NewMessage("x", deduplication_id="k")
    run(engine, Produce("q", message), Configure("q", SettingsChange(deduplication_window_ms=5)))
    assert do(engine, Produce("q", message), T0 + 4).duplicate
    assert not do(engine, Produce("q", message), T0 + 5).duplicate


def test_a_message_that_is_moved_takes_no_id_with_it(engine):
    produced = send_dead_letter(engine, deduplication_id="k", deduplication_window_ms=WINDOW_MS)
    assert not send_unique(engine, queue="q-dlq").duplicate
    assert redrive(engine, produced.id, target="other") == (True,)
    assert not send_unique(engine, queue="other").duplicate
    assert send_unique(engine).id == produced.id


def test_a_duplicate_of_a_full_queue_is_answered_all_the_same(engine):
    first = send_unique(engine)
    configure(engine, max_messages=1, max_bytes=1)
    assert send_unique(engine).id == first.id
    message = NewMessage("far too long", deduplication_id="k")
    assert do(engine, Produce("q", message)).duplicate
    assert [each.duplicate for each in do(engine, ProduceMany("q", (message, message)))] == [True, True]
    assert [each.duplicate for each in do(engine, ProduceEach((("q", message),), 1))] == [True]


def test_duplicates_within_one_command_need_room_once(engine):
    configure(engine, max_messages=1)
    message = NewMessage("x", deduplication_id="k")
    assert [each.duplicate for each in do(engine, ProduceMany("q", (message, message)))] == [False, True]
    assert counted(engine)["q"].ready == 1


def test_a_refused_message_leaves_no_id(engine):
    configure(engine, max_messages=1)
    send(engine)
    message = NewMessage("x", deduplication_id="k")
    do(engine, Produce("q", message))
    do(engine, ProduceMany("q", (message,)))
    do(engine, ProduceEach((("q", message),)))
    acknowledge(engine)
    assert not do(engine, Produce("q", message)).duplicate


def test_a_deleted_dead_letter_leaves_the_id_of_its_queue(engine):
    produced = send_dead_letter(engine, deduplication_id="k", deduplication_window_ms=WINDOW_MS)
    assert do(engine, Delete("q-dlq", (produced.id,))) == (True,)
    assert held_for(engine, produced)
