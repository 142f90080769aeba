"""A file made by Forq itself opens, is migrated in place with every message kept, and a copy is left beside it."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from forq_trio.model import limits
from forq_trio.model.clock import SystemClock
from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.sqlite.files.check import check_file, verify_backup
from forq_trio.storage.sqlite.files.open import open_database

ROWS = 600
READ_OURS = """
SELECT
    seq, id, queue, is_dlq, content, status, attempts, process_after, processing_started_at, failure_reason,
    received_at, updated_at, expires_after, priority, position, lease_until, receipt
FROM messages ORDER BY seq
"""


def backups(path: str) -> list[Path]:
    return sorted(Path(path).parent.glob("forq.db.forq-backup-*"))


def expected(rows):
    """What Forq's rows are to become, said again in Python."""
    now_ms = SystemClock().now_ms()
    for seq, row in enumerate(sorted(rows, key=lambda row: (row[9], row[0])), start=1):
        *same, status, attempts, process_after, started_at, reason, received_at, updated_at, expires = row
        message_id, queue, is_dlq, content = same
        delayed = status == 0 and process_after > now_ms
        lease = started_at + limits.LEASE_MS_DEFAULT if status == 1 else None
        yield (
            *(seq, message_id, queue, is_dlq, content, 3 if delayed else status, attempts, process_after),
            *(
                started_at,
                reason,
                received_at,
                updated_at,
                expires,
                limits.PRIORITY_DEFAULT,
                seq,
                lease,
                started_at if status == 1 else None,
            ),
        )


@pytest.mark.parametrize("log", [False, True], ids=["closed", "log left over"])
@pytest.mark.parametrize("without_rowid", [True, False], ids=["without rowid", "plain"])
def test_every_message_comes_along(path, make_forq_file, forq_rows, read, without_rowid, log) -> None:
    """F14, F3: order by received_at; a delayed message stays delayed, one in process keeps its lease."""
    rows = forq_rows(ROWS)
    make_forq_file(rows, without_rowid=without_rowid, migrate_table=without_rowid, log=log)
    open_database(path, "full").close()
    assert read(path, READ_OURS) == list(expected(rows))
    report = check_file(path)
    assert report.problems == []
    assert (report.messages, report.queues) == (ROWS, 6)
    assert read(path, "SELECT max(last_seq) FROM queue_counts") == [(ROWS,)]
    names = {name for (name,) in read(path, "SELECT name FROM sqlite_schema")}
    assert not {"forq_messages", "schema_migrations", "idx_expired"} & names


def test_the_copy_beside_it_is_the_file_as_it_was(path, make_forq_file, forq_rows, read) -> None:
    rows = forq_rows(500)
    make_forq_file(rows, log=True)
    open_database(path, "full").close()
    (copy,) = backups(path)
    assert sorted(read(str(copy), "SELECT id FROM messages")) == sorted((row[0],) for row in rows)
    assert read(str(copy), "SELECT version FROM schema_migrations") == [(1,)]
    report = verify_backup(str(copy))
    assert report.ok
    assert (report.messages, report.schema_version) == (500, 0)
    open_database(path, "full").close()
    assert backups(path) == [copy]


def test_nobody_else_can_read_what_was_migrated(path, make_forq_file, forq_rows) -> None:
    """Forq leaves a file, and a log, that everybody on the machine can read."""
    make_forq_file(forq_rows(500), log=True)
    for file in Path(path).parent.iterdir():
        file.chmod(0o644)
    with closing(open_database(path, "full")) as database:
        database.connection.execute("UPDATE queue_counts SET updated_at = 2")
        files = {file.name: file.stat().st_mode & 0o777 for file in Path(path).parent.iterdir()}
    assert {"forq.db", "forq.db-wal", "forq.db-shm", "forq.db.lock", backups(path)[0].name} <= set(files)
    assert set(files.values()) == {0o600}, files


def test_columns_that_forq_added_later_are_let_pass(path, make_forq_file, forq_rows, read) -> None:
    """Forq's receipts are in none of them: each is the time of a claim."""
    rows = forq_rows(50)
    make_forq_file(rows, more_columns=", receipt_id TEXT, another INTEGER NOT NULL DEFAULT 7")
    open_database(path, "full").close()
    assert read(path, READ_OURS) == list(expected(rows))


def test_an_empty_forq_file_is_taken_over_too(path, make_forq_file) -> None:
    make_forq_file([])
    with closing(open_database(path, "full")) as database:
        assert database.connection.execute("SELECT count(*) FROM messages").get == 0


def test_an_unknown_status_is_refused_before_anything_is_written(
    path, make_forq_file, forq_rows, fingerprint
) -> None:
    row = list(forq_rows(1)[0])
    row[4] = 7
    make_forq_file([tuple(row)])
    before = fingerprint()
    with pytest.raises(StorageOpenError, match="messages of an unknown status"):
        open_database(path, "full")
    after = fingerprint()
    del after["forq.db.lock"]
    assert after == before


def test_a_failure_in_the_middle_leaves_the_original_whole(path, make_forq_file, forq_rows, read) -> None:
    """A plain table may hold a message without an id, which cannot come along: noticed only after the copying."""
    rows = forq_rows(200)
    rows[100] = (None, *rows[100][1:])
    make_forq_file(rows, without_rowid=False)
    before = read(path, "SELECT * FROM messages ORDER BY rowid"), read(path, "SELECT sql FROM sqlite_schema")
    with pytest.raises(StorageOpenError, match="messages that have no id"):
        open_database(path, "full")
    assert before == (
        read(path, "SELECT * FROM messages ORDER BY rowid"),
        read(path, "SELECT sql FROM sqlite_schema"),
    )
    assert len(backups(path)) == 1


KILLED = """
import os, signal, sys
import apsw
from forq_trio.storage.sqlite.files.open import open_database

def watch(cursor, statement, bindings):
    if sys.argv[2] in statement:
        os.kill(os.getpid(), signal.SIGKILL)
    return True

apsw.connection_hooks.append(lambda connection: connection.set_exec_trace(watch))
open_database(sys.argv[1], "full")
"""


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("integrity_check", marks=pytest.mark.tier2),
        "ALTER TABLE",
        pytest.param("INSERT INTO queue_counts", marks=pytest.mark.tier2),
        "COMMIT",
    ],
)
def test_killed_at_any_point_the_next_start_finds_every_message(
    path, make_forq_file, forq_rows, read, moment
) -> None:
    rows = forq_rows(ROWS)
    make_forq_file(rows)
    killed = subprocess.run([sys.executable, "-c", KILLED, path, moment], check=False)
    assert killed.returncode == -9
    with closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        assert connection.execute("SELECT count(*) FROM messages").get == ROWS
        assert connection.pragma("application_id") == 0
    open_database(path, "full").close()
    assert read(path, READ_OURS) == list(expected(rows))
    assert check_file(path).ok


def test_a_forq_that_still_runs_is_noticed(path, make_forq_file, forq_rows) -> None:
    make_forq_file(forq_rows(10))
    with closing(apsw.Connection(path)) as running:
        running.execute("SELECT count(*) FROM messages").fetchall()
        with pytest.raises(StorageOpenError, match="is locked by another process"):
            open_database(path, "full")
        assert running.execute("SELECT count(*) FROM messages").get == 10
    assert backups(path) == []
    open_database(path, "full").close()
