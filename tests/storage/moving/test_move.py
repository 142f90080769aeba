"""A move brings everything along: row for row, whenever it was killed, or says why not before it changes anything."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import msgspec
import psycopg
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import (
    BindTable,
    LeaseMessages,
    OfferMany,
    OpenConsumer,
    Purge,
    RunSchedule,
    SaveRedrive,
    StagePage,
)
from forq_trio.model.errors import StorageOpenError, StorageUnavailable
from forq_trio.model.keys.types import Offering
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.publishing.types import StagedPart
from forq_trio.model.queues.settings import QueueTable
from forq_trio.model.server.processes import ProcessReport
from forq_trio.storage import move as module
from forq_trio.storage.engine import Batch, Engine, EngineSettings
from forq_trio.storage.move import NOT_MOVED, MovedTable, MoveFailed, move
from forq_trio.storage.open import open_engine, opened_for_move
from support.actors import T0
from support.batches import do, run
from support.effort import EFFORT
from support.redrives import redrive_task
from support.rich import Filled, fill, move_into_pages
from support.words import ack, claim, send

SETTINGS = EngineSettings(history=True, events=True)
ALL_ROWS = 'SELECT {} FROM "{}" ORDER BY {}'


class Killed(BaseException):
    """Stands for kill -9: nothing that follows is done."""


def silent(doing: str, table: str, rows: int) -> None:
    """Nobody looks."""


def moved(source: str, target: str, progress: module.Progress = silent) -> list[MovedTable]:
    with opened_for_move(source, target) as (here, there, tables):
        return move(here, there, tables, progress)


def killed_after(pages: int) -> module.Progress:
    left = pages

    def progress(doing: str, table: str, rows: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Killed

    return progress


def lease_all(engine: Engine, contents: list[str]) -> None:
    run(engine, *map(send, contents))
    do(engine, OpenConsumer("q", "k"))
    do(engine, LeaseMessages("q", "k", 1, 1, 100, 10**6))


def stage_all(engine: Engine, contents: list[str]) -> None:
    body = msgspec.msgpack.encode(list(map(NewMessage, contents)))
    do(engine, StagePage("q", "s", 0, (StagedPart(body, len(contents), 100),)))


def offer_behind(engine: Engine, contents: list[str]) -> None:
    def offer(content: str) -> None:
        run(engine, OfferMany("q", (Offering(key="k", content=content, mode="onceMore"),)))

    offer("in process")
    run(engine, claim())
    for content in contents:
        offer(content + contents[-1])


def opened(url: str) -> Engine:
    return open_engine(url, SETTINGS, "normal")


def all_rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All that a file has, read without the code of moves."""
    with closing(apsw.Connection(str(path))) as connection:
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return {
            name: connection.execute(
                ALL_ROWS.format("*", name, ", ".join(str(n + 1) for n in range(columns)))
            ).fetchall()
            for name in names
            if name not in NOT_MOVED and not name.startswith("sqlite_")
            for (columns,) in connection.execute(
                "SELECT count(*) FROM pragma_table_xinfo(?)", (name,)
            ).fetchall()
        }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rich.db"


@pytest.fixture
def filled(path: Path) -> Filled:
    with closing(opened(f"sqlite:///{path}")) as engine:
        filled = fill(engine)
    with closing(open_engine(f"sqlite:///{path}", EngineSettings(events=True), "normal")) as engine:
        move_into_pages(engine)
    return filled


@pytest.fixture
def back(tmp_path: Path) -> Path:
    return tmp_path / "back.db"


@pytest.fixture
def refusal(path: Path, database: str) -> Callable[..., str]:
    """Why a move is refused."""

    def run(source: str = f"sqlite:{path}", target: str = database) -> str:
        with pytest.raises(StorageOpenError) as raised:
            moved(source, target)
        return str(raised.value)

    return run


def test_every_table_is_moved_or_said_not_to_be(path, filled, database):
    """A table of a later migration has to be filled in support/rich.py, or stand in NOT_MOVED with its reason."""
    rows = {each.name: each.rows for each in moved(f"sqlite:{path}", database)}
    assert rows.keys() == all_rows(path).keys()
    assert [name for name, count in rows.items() if not count] == []
    with psycopg.connect(database) as connection:
        of_postgres = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'forq'"
        ).fetchall()
    assert {name for (name,) in of_postgres} == rows.keys() | NOT_MOVED.keys() - {"moving"}
    assert all(NOT_MOVED.values())


def test_there_and_back_is_equal_row_for_row(path, filled, database, back):
    there = moved(f"sqlite:{path}", database)
    assert moved(database, f"sqlite:{back}") == there
    assert all_rows(back) == all_rows(path)


def test_killed_after_every_page_it_goes_on_behind_it(path, filled, database, back, monkeypatch):
    monkeypatch.setattr(limits, "MOVE_PAGE_ROWS_MAX", 7)
    monkeypatch.setattr(limits, "MOVE_FETCH_ROWS", 2)
    for source, target in ((f"sqlite:{path}", database), (database, f"sqlite:{back}")):
        if source == database and EFFORT.times is None:
            moved(source, target)
            break
        kills = 0
        while True:
            try:
                moved(source, target, killed_after(1))
            except Killed:
                kills += 1
            else:
                break
            with pytest.raises(StorageOpenError, match=r"is half filled: `forq move` was interrupted"):
                opened(target.replace("sqlite:", "sqlite:///"))
            if kills > 60:  # only comparing is left, which begins anew each time
                moved(source, target)
                break
        assert kills > 30
    assert all_rows(back) == all_rows(path)


def test_a_page_has_few_rows_and_bytes(path, database, monkeypatch):
    with closing(opened(f"sqlite:///{path}")) as engine:
        run(engine, *(send("x" * 1_000) for _ in range(30)))
    monkeypatch.setattr(limits, "MOVE_PAGE_BYTES", 5_000)
    sizes: list[int] = []

    def progress(doing: str, table: str, rows: int) -> None:
        if (doing, table) == ("copying", "messages"):
            sizes.append(rows - sum(sizes))

    moved(f"sqlite:{path}", database, progress)
    assert sizes == [5] * 6


def test_both_are_used_as_before(path, filled, database, back):
    """Receipts, deduplication, numbers that go on, on either engine."""
    moved(f"sqlite:{path}", database)
    moved(database, f"sqlite:{back}")
    for url in (database, f"sqlite:///{back}"):
        with closing(opened(url)) as engine:
            assert do(engine, send(deduplication_id="once")).sequence == filled.once.sequence
            last = max(row[0] for row in all_rows(path)["messages"])
            assert do(engine, send("new", queue="new")).sequence > last
            assert do(engine, ack(filled.leased)) == (True,)
            assert do(engine, ack(filled.leased)) == (False,)
            other = "00000000-0000-4000-8000-000000000001"
            do(engine, SaveRedrive(redrive_task(other)))
            assert other in engine.snapshot().redrives
            assert not isinstance(do(engine, RunSchedule("a")), Exception)
            assert do(engine, claim(queue="lake", most=10))
            assert not isinstance(do(engine, Purge("groups")), Exception)


def test_a_target_that_is_not_empty_is_refused_and_stays_as_it_is(path, filled, database, refusal, back):
    with closing(opened(database)) as engine:
        do(engine, send("mine", queue="mine"))
    with closing(opened(f"sqlite:///{back}")) as engine:
        do(engine, send("mine", queue="mine"))
    assert "is not empty: it has messages" in refusal()
    assert "is not empty: it has messages" in refusal(database, f"sqlite:{back}")
    for url in (database, f"sqlite:///{back}"):
        with closing(opened(url)) as engine:
            assert [each.content for each in do(engine, claim(queue="mine"))] == ["mine"]


def test_a_file_that_a_server_has_open_is_refused(path, filled, refusal):
    with closing(opened(f"sqlite:///{path}")):
        assert "in use by another forq server" in refusal()


def test_a_database_whose_processes_are_alive_is_refused(path, filled, database, refusal, back):
    with closing(opened(database)) as engine:
        assert engine.listen is not None
        with closing(engine.listen()) as listener:
            listener.meet(ProcessReport(id="1", name="host-a", process=7, version="1.0", started_at=0))
            assert "is in use by host-a: stop what uses it" in refusal()
            assert "is in use by host-a: stop what uses it" in refusal(database, f"sqlite:{back}")
    moved(f"sqlite:{path}", database)


def test_a_process_that_nobody_knew_of_writes_nothing_meanwhile_and_reads_anew(path, filled, database):
    with closing(opened(database)) as engine:
        refused: list[str] = []

        def progress(doing: str, table: str, rows: int) -> None:
            if not refused:
                with pytest.raises(StorageUnavailable):
                    engine.execute_batch(Batch([send("lost")], T0))
                refused.append(table)

        moved(f"sqlite:{path}", database, progress)
        assert refused
        assert [each.content for each in do(engine, claim(queue="relayed"))] == ["r3"]


def test_another_source_does_not_go_on_in_a_half_filled_target(path, filled, database, refusal, tmp_path):
    with pytest.raises(Killed):
        moved(f"sqlite:{path}", database, killed_after(3))
    opened(f"sqlite:///{tmp_path / 'other.db'}").close()
    assert f"is half filled from {path}: move that" in refusal(f"sqlite:{tmp_path / 'other.db'}")


def test_a_source_that_was_used_since_is_found_out(path, filled, database):
    """The target stays half filled."""
    with pytest.raises(Killed):
        moved(f"sqlite:{path}", database, killed_after(6))
    with closing(opened(f"sqlite:///{path}")) as engine:
        assert do(engine, ack(filled.leased)) == (True,)
    with pytest.raises(MoveFailed, match=r"differs: .* one of them was used since the move began"):
        moved(f"sqlite:{path}", database)
    with pytest.raises(StorageOpenError, match="is half filled"):
        opened(database)


def test_text_that_postgresql_cannot_store_is_named_before_anything_is_changed(path, database, refusal):
    with closing(opened(f"sqlite:///{path}")) as engine:
        run(engine, send("fine"), send("a\0b"), send("c", attributes={"k": "\0"}))
    assert "in messages, seq: 2, 3; remove these first" in refusal()
    opened(database).close()


@pytest.mark.parametrize(
    ("kept_in", "named"),
    [
        (lease_all, "messages, seq: 2, 3"),
        (stage_all, "staged_parts, stage_id page part: 1 0 0"),
        (offer_behind, "message_keys, message: 1"),
    ],
)
def test_such_text_is_found_in_pages_and_offers_too(path, database, refusal, kept_in, named):
    with closing(open_engine(f"sqlite:///{path}", EngineSettings(), "normal")) as engine:
        kept_in(engine, ["fine", "a\0b", "\0"])
    assert f"in {named}; remove these first" in refusal()


@pytest.mark.parametrize("kept_in", [lease_all, stage_all, offer_behind])
def test_text_that_only_looks_like_it_is_moved(path, database, kept_in):
    with closing(open_engine(f"sqlite:///{path}", EngineSettings(), "normal")) as engine:
        kept_in(engine, [r"\u0000", r"a\\u0000", "0"])
    moved(f"sqlite:{path}", database)


def test_messages_of_applications_that_no_server_has_moved_are_not_lost(database, refusal, back):
    opened(database).close()
    with psycopg.connect(database) as connection:
        connection.execute("SELECT forq.send('orders', 'tea')")
    assert "has 1 message of applications that no server has moved into queues" in refusal(
        database, f"sqlite:{back}"
    )


def test_queues_that_are_bound_to_tables_are_named(database, refusal, back):
    with closing(opened(database)) as engine:
        run(engine, BindTable("orders", QueueTable("pgq", "Orders/1")), send("plain"))
    assert "unbind them first: orders" in refusal(database, f"sqlite:{back}")


def test_what_queues_refused_stays_and_is_told(database, back):
    opened(database).close()
    with psycopg.connect(database) as connection:
        connection.execute("INSERT INTO forq.sent_set_aside VALUES (1, 'q', '{}', 'code', 'reason')")
    with opened_for_move(database, f"sqlite:{back}") as (source, target, tables):
        move(source, target, tables, silent)
        (sentence,) = source.left()
    assert sentence.startswith("1 message that queues refused stay in forq.sent_set_aside")


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("sqlite:a.db", "sqlite:b.db", "one of the two databases is sqlite:<path>"),
        ("postgresql:///a", "postgresql:///b", "one of the two databases is sqlite:<path>"),
        ("sqlite:/no/such/file.db", "postgresql://forq:hunter2@127.0.0.1:1/q", "does not exist"),
        ("postgresql://forq:hunter2@127.0.0.1:1/q", "sqlite:b.db", "q at 127.0.0.1 cannot be used"),
        ("sqlite:a.db", "mysql://forq:hunter2@h/q", "'mysql://…' is not a database URL"),
    ],
)
def test_what_is_no_pair_of_databases(refusal, source, target, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if source == "sqlite:a.db":
        opened("sqlite:///a.db").close()
    said = refusal(source, target)
    assert words in said
    assert "hunter2" not in said
    assert not (tmp_path / "b.db").exists()


def test_a_source_in_postgresql_without_a_schema_gets_none(database, refusal, back):
    assert "has no queue: there is no schema `forq`" in refusal(database, f"sqlite:{back}")
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT to_regnamespace('forq')").fetchone() == (None,)


def test_schemas_that_differ_are_refused_before_anything_is_changed(path, filled, database, refusal):
    opened(database).close()
    with psycopg.connect(database) as connection:
        connection.execute(
            "ALTER TABLE forq.outboxes ADD COLUMN more bigint; CREATE TABLE forq.new (id bigint)"
        )
    assert "the two schemas differ in new, outboxes" in refusal()


def test_a_move_whose_lock_is_lost_says_so_instead_of_leaving_what_was_sent_meanwhile(
    path, filled, database, back
):
    moved(f"sqlite:{path}", database)
    lost: list[str] = []

    def lose(what: str, table: str, rows: int) -> None:
        if not lost:
            with psycopg.connect(database, autocommit=True) as connection:
                lost.extend(
                    connection.execute(
                        "SELECT pg_terminate_backend(pid)::text FROM pg_locks WHERE granted AND"
                        " mode = 'ShareUpdateExclusiveLock' AND relation = 'forq.gate'::regclass"
                    ).fetchone()
                )

    with pytest.raises(MoveFailed, match="goes on when it is started again"):
        moved(database, f"sqlite:{back}", lose)
    assert lost == ["true"]


def test_ctrl_c_amid_an_answer_ends_the_move_and_says_nothing_else(
    path, filled, database, monkeypatch, caplog
):
    """The connection cannot roll back then; psycopg would tell of that, with the connection's details."""

    def interrupted(cursor: psycopg.ServerCursor, number: int) -> Iterator[None]:
        cursor.connection.pgconn.send_query(b"SELECT 1")
        raise KeyboardInterrupt
        yield

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.ServerCursor, "_fetch_gen", interrupted)
        with pytest.raises(KeyboardInterrupt):
            moved(f"sqlite:{path}", database)
    assert caplog.messages == []
    assert all(each.rows for each in moved(f"sqlite:{path}", database))
