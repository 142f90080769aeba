"""A step of compaction: as many pages as asked, within its bounds, and nothing where the file cannot."""

import apsw
import pytest

from forq_trio.model.commands import Compact, Compacted, ProduceMany, Purge
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite import compaction
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.batches import run


def purged(path: str) -> SqliteEngine:
    engine = SqliteEngine(path, EngineSettings(), "normal")
    run(engine, ProduceMany("q", (NewMessage("x" * 40_000),) * 100))
    run(engine, Purge("q"))
    return engine


def step(engine: SqliteEngine, pages: int) -> Compacted:
    (outcome,) = run(engine, Compact(pages)).outcomes
    assert isinstance(outcome, Compacted)
    return outcome


@pytest.fixture
def engine(tmp_path):
    engine = purged(str(tmp_path / "forq.db"))
    yield engine
    engine.close()


@pytest.mark.parametrize("pages", [1, 2, 10, 64])
def test_a_step_gives_back_as_many_pages_as_it_was_asked_for(engine, pages, monkeypatch) -> None:
    monkeypatch.setattr(compaction, "STEP_SECONDS", 60)
    before = engine._database.connection.pragma("page_count")
    done = step(engine, pages)
    assert done.pages == pages
    assert done.free_pages == engine._database.connection.pragma("freelist_count")
    assert before - pages - 2 <= engine._database.connection.pragma("page_count") <= before - pages


def test_a_step_is_bounded_in_pages_and_in_time(engine, monkeypatch) -> None:
    monkeypatch.setattr(compaction, "STEP_SECONDS", 60)
    assert step(engine, 10_000).pages == compaction.STEP_PAGES
    monkeypatch.setattr(compaction, "STEP_SECONDS", 0)
    assert 1 <= step(engine, 64).pages <= 2


def test_nothing_is_left_at_the_end_and_the_rest_is_whole(engine) -> None:
    while step(engine, 64).pages:
        pass
    assert engine._database.connection.pragma("freelist_count") == 0
    assert engine._database.connection.pragma("integrity_check") == "ok"


def test_a_file_of_an_earlier_version_stays_as_it_is(tmp_path) -> None:
    path = str(tmp_path / "forq.db")
    SqliteEngine(path, EngineSettings()).close()
    connection = apsw.Connection(path)
    connection.pragma("journal_mode", "DELETE")
    connection.pragma("auto_vacuum", 0)
    connection.execute("VACUUM")
    connection.close()
    engine = purged(path)
    try:
        assert not engine.facts().gives_pages_back
        assert step(engine, 64).pages == 0
    finally:
        engine.close()
