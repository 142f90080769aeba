"""A staged part that cannot be read: its stage is set aside, and the others are published all the same."""

from contextlib import closing

import apsw
import msgspec

from forq_trio.model import limits
from forq_trio.model.commands import Publish, StagePage
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.publishing.types import Stage, StagedPart
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.batches import do, run
from support.words import claim, contents, send


def test_a_damaged_stage_hides_no_others(tmp_path) -> None:
    path = str(tmp_path / "forq.db")
    with closing(SqliteEngine(path, EngineSettings(), "normal")) as engine:
        for name in "abc":
            parts = [StagedPart(msgspec.msgpack.encode([NewMessage(name + n)]), 1, 2) for n in "12"]
            do(engine, StagePage("q", name, 0, tuple(parts)))
    with closing(apsw.Connection(path)) as connection:
        connection.execute("UPDATE staged_parts SET body = x'00' WHERE stage_id = 2 AND part = 1")
    with closing(SqliteEngine(path, EngineSettings(), "normal")) as engine:
        do(engine, Publish("app", 1, tuple(Stage("q", name, 1) for name in "abc")))
        set_aside = []
        for _ in range(9):
            set_aside += run(engine).set_aside
        assert [(message.queue, message.sequence) for message in set_aside] == [("q", 0)]
        assert engine.snapshot().staging.first_entry is None
        assert engine.snapshot().staging.in_progress == 0
        with closing(engine.open_reader()) as reader:
            published = [message.content for message in reader.browse("q", None, 10)]
        assert published[::-1] == ["a1", "a2", "b1", "c1", "c2"]


def test_beside_a_bad_command_as_many_parts_are_published_as_in_any_batch(engine) -> None:
    parts = [StagedPart(msgspec.msgpack.encode([NewMessage(content)]), 1, 1) for content in "123"]
    for stage, others in ("a", []), ("b", [send("\ud800")]):
        do(engine, StagePage("q", stage, 0, tuple(parts)))
        do(engine, Publish("app", ord(stage), (Stage("q", stage, 1),)))
        run(engine, *others)
        assert (engine.snapshot().staging.stages, engine.snapshot().staging.in_progress) == (0, 0)
    assert contents(do(engine, claim(most=9))) == ["1", "2", "3"] * 2


def test_beside_a_bad_command_a_batch_publishes_no_more_than_any_other(engine, monkeypatch) -> None:
    monkeypatch.setattr(limits, "PUBLISH_STEP_MESSAGES_MAX", 4)
    parts = [StagedPart(msgspec.msgpack.encode([NewMessage(content)]), 1, 1) for content in "12345"]
    do(engine, StagePage("q", "s", 0, tuple(parts)))
    do(engine, Publish("app", 1, (Stage("q", "s", 1),)))
    for ready in 2, 4, 5:
        run(engine, send("\ud800"))
        assert engine.snapshot().counts["q"].ready == ready


def test_a_restart_goes_on_where_it_was(tmp_path) -> None:
    path = str(tmp_path / "forq.db")
    with closing(SqliteEngine(path, EngineSettings(), "normal")) as engine:
        part = StagedPart(msgspec.msgpack.encode([NewMessage("x")] * 250), 250, 250)
        do(engine, StagePage("q", "s", 0, (part,) * 3))
        do(engine, StagePage("q", "t", 0, (part,)))
        do(engine, Publish("app", 1, (Stage("q", "s", 1),)))
        run(engine)
        before = engine.snapshot().staging
    with closing(SqliteEngine(path, EngineSettings(), "normal")) as engine:
        assert engine.snapshot().staging == before
        assert (before.stages, before.bytes, before.in_progress, before.first_entry, before.last_entry) == (
            2,
            3 * len(part.body),
            1,
            1,
            1,
        )
        run(engine)
        run(engine)
        assert engine.snapshot().staging.first_entry is None
        assert engine.snapshot().counts["q"].ready == 750
