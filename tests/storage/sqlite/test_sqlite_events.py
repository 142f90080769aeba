"""Lifecycle events in a file: their kinds by number, a restart, how big they are, and damage."""

from contextlib import closing

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Ack, ProduceMany, TrimEvents
from forq_trio.model.logs.events import KINDS
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.batches import do, read_events
from support.vm_steps import Steps
from support.words import claim, receipts, release, send

ON = EngineSettings(events=True)


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "forq.db")


def open_it(path: str, settings: EngineSettings = ON) -> SqliteEngine:
    return SqliteEngine(path, settings, "normal")


def some(count: int, queue: str = "q") -> ProduceMany:
    return ProduceMany(queue, tuple(NewMessage("x" * 50) for _ in range(count)))


def test_the_number_of_a_kind_is_its_place_for_ever(path) -> None:
    with closing(open_it(path)) as engine:
        for kind, _ in enumerate(KINDS):
            engine._database.connection.execute(
                "INSERT INTO events (id, kind) VALUES (?, ?)", (kind + 1, kind)
            )
        with closing(engine.open_reader()) as reader:
            assert [event["kind"] for event in read_events(reader)] == list(KINDS)
    assert KINDS[:3] == ("produced", "delivered", "acked")


@pytest.mark.parametrize("again", [ON, EngineSettings()], ids=["on", "off"])
def test_a_restart_knows_which_events_there_are(path, again) -> None:
    with closing(open_it(path)) as engine:
        do(engine, some(10, "a queue"))
        do(engine, TrimEvents(0, engine.snapshot().logs["events"].bytes // 2))
        before = engine.snapshot().logs["events"]
        assert (before.first, before.last) == (6, 10)
    with closing(open_it(path, again)) as engine:
        assert engine.snapshot().logs["events"] == before._replace(enabled=again.events)
        do(engine, some(1))
        assert engine.snapshot().logs["events"].last == 10 + again.events


def test_the_bytes_that_are_told_are_about_those_of_the_file(path) -> None:
    with closing(open_it(path)) as engine:
        for _ in range(12):
            do(engine, some(500))
            do(engine, Ack("q", receipts(do(engine, claim(most=500)))))
        tables = "('events', 'events_message')"
        sizes = engine._database.connection.execute(
            f"SELECT sum(pgsize) FROM dbstat WHERE name IN {tables}"
        ).get
        assert 0.8 < engine.snapshot().logs["events"].bytes / sizes < 1.25


def test_what_a_damaged_message_says_does_not_stop_the_events(path) -> None:
    with closing(open_it(path)) as engine:
        do(engine, some(1))
        engine._database.connection.execute("UPDATE messages SET received_at = x'ff', bytes = 'many'")
        do(engine, claim())
        engine._database.connection.execute(
            "UPDATE events SET queue = 5, reason = x'41', bytes = 'many' WHERE id = 1"
        )
        with closing(engine.open_reader()) as reader:
            assert read_events(reader)[0]["id"] == 1
    with closing(open_it(path)) as engine:
        do(engine, some(1))
        assert engine.snapshot().logs["events"].last >= 2


def test_the_latest_events_of_a_message_are_found_without_reading_the_older_ones(path, monkeypatch):
    monkeypatch.setattr(limits, "MESSAGE_EVENTS_MAX", 3)
    counts = []
    with closing(open_it(path)) as engine:
        sent = do(engine, send())
        for releases in (10, 100):
            for _ in range(releases):
                do(engine, release(*do(engine, claim())))
            with closing(engine.open_reader()) as reader:
                steps = Steps(reader._connection)
                assert reader.message_events("q", sent.id).count(b"\n") == 3
                counts.append(steps.count)
    assert counts[1] == counts[0]
