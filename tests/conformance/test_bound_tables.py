"""A queue that is bound to a table takes no messages in the engine, whoever sends or moves them there."""

import pytest

from forq_trio.model.commands import (
    BindTable,
    Configure,
    ForgetQueue,
    Produce,
    ProduceEach,
    Redrive,
    Resubmit,
    RunSchedule,
    SaveSchedule,
)
from forq_trio.model.errors import InvalidSetting, QueueBound, QueueNotBound, QueueNotEmpty
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.settings import QueueTable, SettingsChange
from forq_trio.model.schedules.types import NewSchedule

from .script import HOUR_MS, T0, configure, counted, do, drain, pause, run, send, send_dead_letter

TABLE = QueueTable("pgq", "Orders/1")


def bind(engine, queue="q", table: QueueTable | None = TABLE):
    return do(engine, BindTable(queue, table))


def test_it_is_bound_and_unbound(engine):
    assert bind(engine) is None
    assert engine.snapshot().settings["q"].table == TABLE
    assert "q" in engine.snapshot().queue_names
    assert bind(engine) is None
    assert bind(engine, table=None) is None
    assert "q" not in engine.snapshot().settings
    assert isinstance(bind(engine, table=None), QueueNotBound)


def test_what_is_sent_to_it_is_refused(engine):
    bind(engine)
    assert isinstance(do(engine, Produce("q", NewMessage("x"))), QueueBound)
    refused, stored = do(engine, ProduceEach((("q", NewMessage("x")), ("other", NewMessage("x")))))
    assert isinstance(refused, QueueBound)
    assert stored.id
    assert counted(engine)["q"].total == 0


def test_what_is_moved_to_it_is_refused(engine):
    letter = send_dead_letter(engine)
    bind(engine)
    bind(engine, "other", QueueTable("pgq", "Other"))
    assert do(engine, Redrive("q-dlq", (letter.id,))) == (False,)
    assert isinstance(do(engine, Redrive("q-dlq", (letter.id,), "other")), QueueBound)
    assert isinstance(do(engine, Resubmit("q-dlq", letter.id)), QueueBound)
    assert counted(engine)["q-dlq"].total == 1
    bind(engine, table=None)
    assert do(engine, Redrive("q-dlq", (letter.id,))) == (True,)


def test_a_message_that_names_it_for_its_dead_letter_goes_to_that_of_its_queue(engine):
    send(engine, "a", dead_letter_queue="letters", max_attempts=1)
    bind(engine, "letters")
    drain(engine)
    assert isinstance(do(engine, Produce("q", NewMessage("b", dead_letter_queue="letters"))), QueueBound)


@pytest.mark.parametrize(
    "change", [{"delay_ms": 1}, {"dead_letter_queue": ""}, {"max_messages": 9}, {"back_off": (1,)}]
)
def test_settings_that_cannot_hold_are_refused(engine, change):
    configure(engine, **change)
    assert isinstance(bind(engine), InvalidSetting)
    do(engine, Configure("q", None))
    configure(engine, lease_ms=9, max_attempts=2)
    assert bind(engine) is None
    assert isinstance(configure(engine, **change), InvalidSetting)
    assert do(engine, Configure("q", SettingsChange(max_attempts=3))).table == TABLE
    assert do(engine, Configure("q", None)).table == TABLE


def test_who_cannot_be_bound(engine):
    send(engine, "a")
    assert isinstance(bind(engine), QueueNotEmpty)
    pause(engine, "paused")
    assert isinstance(bind(engine, "paused"), InvalidSetting)
    configure(engine, "r", dead_letter_queue="letters")
    assert isinstance(bind(engine, "letters"), QueueBound)
    assert isinstance(bind(engine, "q-dlq"), QueueBound)
    assert bind(engine, "first") is None
    assert isinstance(bind(engine, "second"), QueueBound)
    assert isinstance(configure(engine, "r", dead_letter_queue="first"), QueueBound)


def test_forgetting_the_queue_ends_the_binding(engine):
    bind(engine)
    assert do(engine, ForgetQueue("q")) is True
    send(engine, "a")
    assert drain(engine) == ["a"]


def test_a_schedule_for_it_is_refused_where_it_is_saved(engine):
    bind(engine)
    for new in (
        NewSchedule(queue="q", content="", every="1h"),
        NewSchedule(queue="other", content="", every="1h", dead_letter_queue="q"),
    ):
        assert isinstance(do(engine, SaveSchedule("s", new)), QueueBound)
    assert engine.snapshot().schedules.count == 0
    assert do(engine, SaveSchedule("s", NewSchedule(queue="other", content="", every="1h"))).name == "s"


def test_a_run_of_a_schedule_whose_queue_was_bound_since_is_refused_and_names_no_queue(engine, reader):
    new = NewSchedule(queue="q", content="", every="1h", dead_letter_queue="letters")
    do(engine, SaveSchedule("s", new))
    bind(engine)
    assert isinstance(do(engine, RunSchedule("s")), QueueBound)
    run(engine, now=T0 + HOUR_MS)
    assert [each.result for each in reader.schedule("s", 9)[1]] == ["refused"]
    assert "letters" not in engine.snapshot().queue_names


def test_schedules_that_name_a_queue_are_found(engine, reader):
    do(engine, SaveSchedule("a", NewSchedule(queue="q", content="", every="1h")))
    do(engine, SaveSchedule("b", NewSchedule(queue="p", content="", every="1h", dead_letter_queue="letters")))
    assert [reader.schedule_of_queue(queue) for queue in ("q", "letters", "other")] == ["a", "b", None]
