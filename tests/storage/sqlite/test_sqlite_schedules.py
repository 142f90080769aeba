"""Schedules outlive restarts and crashes: one message for each nominal time; a damaged one hides no others."""

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forq_trio.model import limits
from forq_trio.model.commands import SaveSchedule
from forq_trio.model.schedules.types import NewSchedule
from forq_trio.storage.engine import Batch, EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.actors import T0
from support.batches import do, run

STEPS = st.lists(
    st.tuples(
        st.sampled_from((-30_000, 0, 1, 5_000, 10_000, 25_000, 59_000)),
        st.sampled_from(("go on", "restart", "crash")),
    ),
    max_size=15,
)


def open_engine(path: Path) -> SqliteEngine:
    return SqliteEngine(str(path / "forq.db"), EngineSettings(), "normal")


def save(engine, name="s", **members) -> None:
    do(engine, SaveSchedule(name, NewSchedule(**({"queue": "q", "content": name} | members))))


@settings(deadline=None, max_examples=25)
@given(steps=STEPS, jitter=st.sampled_from((None, "7s")))
def test_each_nominal_time_has_one_message_whatever_ends_the_process(steps, jitter):
    """A crash: the batch ran, and the process died before its commit. Within the minute of grace no run is missed."""
    with TemporaryDirectory() as directory:
        engine = open_engine(Path(directory))
        save(engine, every="10s", jitter=jitter)
        now = latest = T0
        for later_ms, then in steps:
            now += later_ms
            if now - latest >= limits.RUN_GRACE_MS:
                now = latest + limits.RUN_GRACE_MS - 1
            latest = max(latest, now)
            if then == "crash":
                engine.execute_batch(Batch([], now))
            if then != "go on":
                engine.close()
                engine = open_engine(Path(directory))
            run(engine, now_ms=now)
        run(engine, now_ms=latest)
        with closing(engine.open_reader()) as reader:
            found = reader.schedule("s", 100)
            assert found is not None
            runs = found[1][::-1]
            assert {each.result for each in runs} <= {"sent"}
            assert [each.nominal for each in runs] == [T0 + 10_000 * n for n in range(1, len(runs) + 1)]
            messages = [message.id for message in reader.browse("q", None, 1_000)][::-1]
            assert messages == [each.message_id for each in runs]
            due_after = found[0].next_run
            assert due_after is not None
            assert due_after + (0 if jitter is None else 7_000) > latest
        engine.close()


@pytest.mark.parametrize(("missed", "sent"), [("skip", 0), ("last", 1), ("all", 5)])
def test_after_hours_without_a_server(tmp_path, missed, sent):
    hour = 3_600_000
    with closing(open_engine(tmp_path)) as engine:
        save(engine, every="1h", missed=missed)
    with closing(open_engine(tmp_path)) as engine:
        snapshot = engine.snapshot()
        assert (snapshot.schedules.count, snapshot.schedules.due_at) == (1, T0 + hour)
        now = T0 + 5 * hour + hour // 2
        for _ in range(10):
            due = run(engine, now_ms=now).next_due_ms
        assert due == T0 + 6 * hour
        assert sum(counts.total for counts in engine.snapshot().counts.values()) == sent


def test_a_restart_knows_who_made_how_many(tmp_path):
    with closing(open_engine(tmp_path)) as engine:
        for name, by in (("a", "t"), ("b", "t"), ("c", None), ("d", "u")):
            do(engine, SaveSchedule(name, NewSchedule(queue="q", content="", every="1h"), by=by))
        before = engine.snapshot().schedules
    with closing(open_engine(tmp_path)) as engine:
        assert engine.snapshot().schedules == before
        assert (before.count, before.made) == (4, {"t": 2, "u": 1})


@pytest.mark.parametrize(
    "definition", ["{", '{"queue": "q", "content": "x", "cron": "61 * * * *"}', '{"queue": 1}']
)
def test_a_damaged_schedule_hides_no_others_and_is_tried_again(tmp_path, definition):
    with closing(open_engine(tmp_path)) as engine:
        for name in "abc":
            save(engine, name, every="10s")
    with closing(apsw.Connection(str(tmp_path / "forq.db"))) as connection:
        connection.execute("UPDATE schedules SET definition = ? WHERE name = 'b'", (definition,))
    with closing(open_engine(tmp_path)) as engine:
        now = T0 + 10_000
        result = run(engine, now_ms=now)
        assert [each.result for each in result.own_work] == ["sent", "sent"]
        (aside,) = result.set_aside
        assert "schedule b" in aside.error
        assert result.next_due_ms == now + 10_000
        assert not run(engine, now_ms=now).set_aside
        (again,) = run(engine, now_ms=now + limits.SET_ASIDE_RETRY_MS).set_aside
        assert "schedule b" in again.error


def test_nothing_is_read_before_a_run_is_due(tmp_path):
    """An idle server runs no query: a batch before the next run opens no transaction."""
    with closing(open_engine(tmp_path)) as engine:
        for n in range(50):
            save(engine, f"s{n}", every="10s")
        statements: list[str] = []
        engine._database.connection.set_exec_trace(
            lambda cursor, sql, bindings: statements.append(sql) or True
        )
        engine.execute_batch(Batch([], T0 + 9_999))
        assert not engine.commit()
        assert statements == []
        engine.execute_batch(Batch([], T0 + 10_000))
        assert engine.commit()
        assert any("schedules" in statement for statement in statements)
