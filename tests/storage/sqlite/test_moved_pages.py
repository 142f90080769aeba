"""What a lease writes: plain messages leave the table, and their page is the only copy until somebody needs them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import LeaseMessages, MoveBack, OpenConsumer, SettleLease
from forq_trio.model.consumers.types import Settling
from forq_trio.model.messages.types import QueueCounts
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.reader import ReadAfter
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.check import check_file
from support.actors import T0
from support.batches import do, looking, run
from support.words import claim, contents, send


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "forq.db")


@pytest.fixture
def engine(path: str) -> Iterator[SqliteEngine]:
    with closing(SqliteEngine(path, EngineSettings(), "normal")) as engine:
        yield engine


def fill(engine: SqliteEngine, count: int = 4) -> None:
    run(engine, *(send(f"m{n}") for n in range(count)))
    do(engine, OpenConsumer("q", "k"))


def lease(engine: SqliteEngine, number: int = 1, now_ms: int = T0) -> None:
    while not do(engine, LeaseMessages("q", "k", 1, number, 100, 10**9), now_ms).complete:
        pass


def settle(engine: SqliteEngine, how: Settling = Settling.ACKNOWLEDGE, number: int = 1) -> None:
    while do(engine, SettleLease("q", "k", 1, number, how)).open is not None:
        pass


def stored(path: str, statement: str = "SELECT count(*) FROM messages") -> int:
    with closing(apsw.Connection(path)) as connection:
        return connection.execute(statement).get


def moved(path: str) -> int:
    return stored(path, "SELECT coalesce(sum(messages), 0) FROM moved_pages")


def test_plain_messages_leave_the_table_and_come_back_when_they_are_released(path, engine):
    fill(engine)
    lease(engine)
    assert (stored(path), moved(path)) == (0, 4)
    assert check_file(path).ok
    assert check_file(path).messages == 4
    settle(engine, Settling.RELEASE)
    assert (stored(path), moved(path)) == (4, 0)
    assert check_file(path).ok
    assert contents(do(engine, claim(most=9))) == ["m0", "m1", "m2", "m3"]


def test_a_read_of_the_newest_names_all_pages_that_it_needs_at_once(engine, monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_PAGE_MESSAGES_MAX", 2)
    fill(engine)
    lease(engine)
    with closing(engine.open_reader()) as reader:
        with pytest.raises(ReadAfter) as needed:
            reader.browse("q", None, 3)
        do(engine, needed.value.command)
        assert contents(reader.browse("q", None, 3)) == ["m3", "m2", "m1"]


def test_an_acknowledged_lease_leaves_nothing(path, engine):
    fill(engine)
    lease(engine)
    settle(engine)
    assert (stored(path), moved(path)) == (0, 0)
    assert engine.snapshot().counts["q"] == QueueCounts()
    assert check_file(path).ok


@pytest.mark.parametrize(
    "fields",
    [
        {"group": "g"},
        {"max_attempts": 3},
        {"ttl_ms": 10**6},
        {"deduplication_id": "d"},
        {"dead_letter_queue": "other"},
    ],
)
def test_what_distinguishes_a_message_stays_in_the_table(path, engine, fields):
    run(engine, send("plain"), send("other", **fields))
    do(engine, OpenConsumer("q", "k"))
    lease(engine)
    assert stored(path) >= 1
    assert check_file(path).ok
    settle(engine, Settling.RELEASE)
    assert contents(do(engine, claim(most=9))) == ["plain", "other"]


def test_attributes_and_a_priority_move_with_it(path, engine):
    run(engine, send("a", attributes={"k": "ü"}, priority=7), send("b", priority=7))
    do(engine, OpenConsumer("q", "k"))
    lease(engine)
    assert stored(path) == 0
    settle(engine, Settling.RELEASE)
    first, second = do(engine, claim(most=9))
    assert (first.content, first.attributes, first.priority, second.priority) == ("a", {"k": "ü"}, 7, 7)


def test_a_page_that_would_overlap_another_stays_in_the_table(path, engine):
    """So that one seek finds the page that may have a message."""
    run(engine, send("low", priority=1), send("high"))
    do(engine, OpenConsumer("q", "k"))
    lease(engine)
    assert (stored(path), moved(path)) == (2, 0)


def test_a_server_that_starts_again_has_them(path):
    with closing(SqliteEngine(path, EngineSettings(), "normal")) as engine:
        fill(engine)
        lease(engine)
    with closing(SqliteEngine(path, EngineSettings(), "normal")) as engine:
        assert engine.snapshot().counts["q"].processing == 4
        run(engine, send("next"))
        lease_again = do(engine, LeaseMessages("q", "k", 1, 1, 100, 10**9))
        assert lease_again.open.messages == 4
        settle(engine)
        assert contents(do(engine, claim(most=9))) == ["next"]


def test_a_history_that_begins_meanwhile_has_them(path):
    with closing(SqliteEngine(path, EngineSettings(), "normal")) as engine:
        fill(engine)
        lease(engine)
    with closing(SqliteEngine(path, EngineSettings(history=True), "normal")) as engine:
        settle(engine)
        assert engine.snapshot().history_of("q").messages == 4


def test_with_a_history_they_stay_in_the_table(path):
    with closing(SqliteEngine(path, EngineSettings(history=True), "normal")) as engine:
        fill(engine)
        lease(engine)
        assert (stored(path), moved(path)) == (4, 0)


def test_while_somebody_looks_at_leased_messages_no_more_are_moved(path, engine):
    """A page of the admin UI that is read every second costs no more than leases did without any moves."""
    fill(engine)
    lease(engine)
    assert len(looking(engine, lambda reader: reader.browse("q", None, 10))) == 4
    assert (stored(path), moved(path)) == (4, 0)
    settle(engine)
    run(engine, send("a"), send("b"))
    lease(engine, 2, T0 + limits.CONSUMER_LOOKED_MS - 1)
    assert (stored(path), moved(path)) == (2, 0)
    settle(engine, number=2)
    run(engine, send("c"))
    lease(engine, 3, T0 + limits.CONSUMER_LOOKED_MS)
    assert (stored(path), moved(path)) == (0, 1)


def test_only_what_is_asked_for_is_put_back(path, engine, monkeypatch):
    monkeypatch.setattr(limits, "CONSUMER_PAGE_MESSAGES_MAX", 2)
    fill(engine, 8)
    lease(engine)
    do(engine, MoveBack("q", 4, 6))
    assert (stored(path), moved(path)) == (2, 6)
    assert check_file(path).ok


def test_a_batch_that_fails_and_runs_again_moves_none(path, engine):
    """A damaged message is set aside alone; the others are leased in their place."""
    fill(engine)
    with closing(apsw.Connection(path)) as connection:
        connection.execute("UPDATE messages SET received_at = 'x' WHERE seq = 2")
    lease(engine)
    assert moved(path) == 0
    assert engine.snapshot().counts["q"].processing == 3


def test_lost_lines_of_moved_messages_are_found_by_a_check(path, engine):
    fill(engine)
    lease(engine)
    with closing(apsw.Connection(path)) as connection:
        connection.execute("DELETE FROM consumer_pages")
    (problem,) = check_file(path).problems
    assert "has no lines of its messages" in problem
