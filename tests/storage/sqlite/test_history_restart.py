"""The history over a restart: what is kept, how much that is, and ids that go on."""

from contextlib import closing

import pytest

from forq_trio.model.commands import Produce, Purge, PurgeHistory, TrimHistory
from forq_trio.model.logs.history import HistoryCounts
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.check import check_file
from support.actors import T0
from support.batches import do


def delete(engine, *contents, queue="q", now=T0):
    for content in contents:
        do(engine, Produce(queue, NewMessage(content)), now_ms=now)
        do(engine, Purge(queue), now_ms=now)


@pytest.fixture
def reopened(tmp_path):
    path = str(tmp_path / "forq.db")

    def reopen(*, history=True):
        return closing(SqliteEngine(path, EngineSettings(history=history), "normal"))

    yield reopen
    assert check_file(path).problems == []


def told(engine):
    snapshot = engine.snapshot()
    counts = {queue: snapshot.history_of(queue) for queue in ("q", "r")}
    kept = {queue: each for queue, each in counts.items() if each.messages}
    return kept, snapshot.logs["history"][1:3]


def test_counts_and_ids(reopened):
    with reopened() as engine:
        delete(engine, "a", "bb")
        delete(engine, "ccc", queue="r")
        delete(engine, "dddd", now=T0 + 9)
        do(engine, TrimHistory(T0 + 1, 9))
        before = told(engine)
    with reopened() as engine:
        assert told(engine) == before == ({"q": HistoryCounts(1, 4)}, (4, 4))
        assert engine.snapshot().history_of(None) == HistoryCounts(1, 4)
        delete(engine, "e")
        assert told(engine)[0] == {"q": HistoryCounts(2, 5)}


def test_ids_go_on_after_the_newest_was_purged(reopened):
    with reopened() as engine:
        delete(engine, "a", queue="r")
        delete(engine, "b", "c")
        do(engine, PurgeHistory("q"))
    with reopened() as engine:
        assert told(engine) == ({"r": HistoryCounts(1, 1)}, (1, 3))
        delete(engine, "d")
        assert told(engine) == ({"q": HistoryCounts(1, 1), "r": HistoryCounts(1, 1)}, (1, 4))


def test_what_was_kept_stays_readable_when_it_is_off(reopened):
    with reopened() as engine:
        delete(engine, "a")
    with reopened(history=False) as engine:
        delete(engine, "b")
        with closing(engine.open_reader()) as reader:
            assert reader.log_lines("history", 0, None, 10, None).lines.count(b"\n") == 1
