"""What the database's server says of itself: connections, dead rows, and who keeps vacuum from working."""

from contextlib import closing

import psycopg
import pytest

from forq_trio.model import limits
from forq_trio.model.errors import StorageUnavailable
from support.batches import do
from support.words import send


@pytest.fixture
def reader(open_one):
    engine = open_one()
    do(engine, send())
    with closing(engine.open_reader()) as reader:
        yield reader


def connect(database: str, application: str, **options) -> psycopg.Connection:
    return psycopg.connect(database, application_name=application, **options)


def test_connections_are_counted_and_ours_among_them(reader, empty_tables):
    before = reader.database()
    with connect(empty_tables, "another"):
        seen = reader.database()
    assert seen.connections == before.connections + 1
    assert seen.connections_ours == before.connections_ours == 2  # the writer's and this one
    assert seen.connections_max == 100
    assert seen.hidden == 0
    assert seen.bytes > 1_000_000


def test_who_holds_a_snapshot_is_named_by_the_oldest_and_not_who_merely_waits(reader, empty_tables):
    def named() -> list[tuple[str, str | None]]:
        return [(each.name, each.state) for each in reader.database().keepers]

    assert named() == []
    with connect(empty_tables, "waits") as waits, connect(empty_tables, "dumps") as dumps:
        waits.execute("SELECT 1")  # each statement of it has a snapshot of its own
        assert named() == []
        dumps.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        dumps.execute("SELECT 1")
        assert named() == [("dumps", "idle in transaction")]
        waits.execute("SELECT pg_current_xact_id()")  # it may have written
        assert named() == [("dumps", "idle in transaction"), ("waits", "idle in transaction")]
        first = reader.database().keepers[0]
        assert (first.kind, first.pid, first.words) == (
            "session",
            dumps.info.backend_pid,
            f"dumps (pid {dumps.info.backend_pid}), idle in transaction",
        )
        dumps.rollback()
        assert named() == [("waits", "idle in transaction")]
        waits.rollback()
    assert named() == []


def test_for_how_long_it_does_nothing_is_told_where_the_server_knows(reader, empty_tables):
    with connect(empty_tables, "sleeps") as sleeps:
        sleeps.execute("SELECT pg_current_xact_id()")
        (at_first,) = reader.database().keepers
        sleeps.execute("SELECT pg_sleep(0.05)")
        (busy_again,) = reader.database().keepers
    assert at_first.oldest == busy_again.oldest
    assert 0 <= at_first.idle_ms < 30_000


def test_a_slot_that_keeps_a_snapshot_is_named(reader, empty_tables):
    with connect(empty_tables, "makes slots", autocommit=True) as slots:
        slots.execute("SELECT pg_create_physical_replication_slot('standby', true)")
        try:
            assert reader.database().keepers == ()  # nobody told it what the standby sees
        finally:
            slots.execute("SELECT pg_drop_replication_slot('standby')")


def test_no_more_keepers_of_snapshots_are_read_than_the_bound(reader, empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "SNAPSHOT_KEEPERS_MAX", 1)
    with connect(empty_tables, "first") as first, connect(empty_tables, "second") as second:
        for each in (first, second):
            each.execute("SELECT pg_current_xact_id()")
        assert [each.name for each in reader.database().keepers] == ["first"]


def test_dead_rows_and_the_last_vacuum(reader, empty_tables, open_one):
    with connect(empty_tables, "owner", autocommit=True) as owner:
        owner.execute("VACUUM forq.messages")
        while (seen := reader.database()).vacuumed_at is None:
            pass  # before PostgreSQL 15 its statistics are a moment late
        assert seen.vacuumed_at > 1_700_000_000_000
        assert seen.dead_rows == 0


def test_a_lost_connection_is_unavailable_once(reader, empty_tables):
    reader.database()
    pid = reader._connection._pg.backend_pid
    with connect(empty_tables, "owner", autocommit=True) as owner:
        owner.execute("SELECT pg_terminate_backend(%s)", [pid])
        while owner.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid]).rowcount:
            pass
    with pytest.raises(StorageUnavailable):
        reader.database()
    assert reader.database().connections_ours == 2
