"""The history over a restart: what is kept, how much that is, and ids that go on."""

from contextlib import closing

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import AckWithResult, Claim, Produce, Purge, PurgeHistory, TrimHistory
from forq_trio.model.limits import HOUR_MS, MIB
from forq_trio.model.logs.history import HistoryCounts
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Receipt
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.check import check_file
from support.actors import T0
from support.batches import do, looking


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


def result_of(engine, message_id):
    known = looking(engine, lambda reader: reader.message_result("q", message_id))
    return known and known.result


def finish(engine, result, *, now=T0):
    """Acknowledge a message with a result; its id."""
    sent = do(engine, Produce("q", NewMessage("x")), now_ms=now)
    (delivery,) = do(engine, Claim("q", 1, 1_000, 0), now_ms=now)
    ack = AckWithResult("q", (Receipt.parse(delivery.receipt),), result, HOUR_MS)
    assert do(engine, ack, now_ms=now) == (True,)
    return sent.id


@pytest.mark.parametrize("old", [1, 9, 10, 11])
def test_the_history_of_another_time_takes_no_place_of_results(reopened, monkeypatch, old):
    """Where it had fewer messages than there may be results, it counted as results."""
    monkeypatch.setattr(limits, "RESULTS_STORED_MAX", 10)
    with reopened() as engine:
        delete(engine, *map(str, range(old)))
    with reopened(history=False) as engine:
        stored = [finish(engine, str(number)) for number in range(12)]
        assert [result_of(engine, each) for each in stored] == [*map(str, range(10)), None, None]
        assert told(engine)[1] == (1, old + 10)


def test_results_do_not_remove_the_history_of_another_time(reopened, monkeypatch):
    """Each result removed 200 messages of it, however long they were to stay."""
    monkeypatch.setattr(limits, "RESULTS_STORED_MAX", 3)
    later = T0 + HOUR_MS
    with reopened() as engine:
        delete(engine, *"abcdef")
        finish(engine, "of that time")
        delete(engine, "g")
    with reopened(history=False) as engine:
        stored = [finish(engine, str(number), now=later) for number in range(2)]
    with reopened(history=False) as engine:
        stored += [finish(engine, str(number), now=later) for number in range(2, 5)]
        assert [result_of(engine, each) for each in stored] == ["0", "1", "2", None, None]
        assert told(engine) == ({"q": HistoryCounts(11, 11 + len("of that time") + 3)}, (1, 11))
        do(engine, TrimHistory(T0 + 1, MIB), now_ms=later)
        assert told(engine)[1] == (9, 11)  # retention has removed it, and left the results
        later = [finish(engine, str(number), now=T0 + 1) for number in range(5, 7)]
        assert [result_of(engine, each) for each in (*stored, *later)] == [
            *[None] * 2,
            "2",
            None,
            None,
            "5",
            "6",
        ]
