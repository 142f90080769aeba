"""A staged part that cannot be read: its stage is set aside, and the others are published all the same."""

from contextlib import closing

import apsw
import msgspec

from forq_trio.model.commands import Publish, StagePage
from forq_trio.model.messages import NewMessage
from forq_trio.model.publishing import Stage, StagedPart
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.batches import do, run


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
            contents = [message.content for message in reader.browse("q", None, 10)]
        assert contents[::-1] == ["a1", "a2", "b1", "c1", "c2"]


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
