"""Database files as Forq itself leaves them, built by hand."""

import os
import random

import apsw

FORQ_SCHEMA = """
CREATE TABLE messages
(
    id                    TEXT PRIMARY KEY,
    queue                 TEXT    NOT NULL,
    is_dlq                BOOLEAN NOT NULL DEFAULT FALSE,
    content               TEXT    NOT NULL,
    status                INTEGER NOT NULL DEFAULT 0,
    attempts              INTEGER NOT NULL DEFAULT 0,
    process_after         INTEGER NOT NULL,
    processing_started_at INTEGER,
    failure_reason        TEXT,
    received_at           INTEGER NOT NULL,
    updated_at            INTEGER NOT NULL,
    expires_after         INTEGER NOT NULL
    {more_columns}
) {options};
CREATE INDEX idx_queue_ready_for_consuming ON messages (queue, status, received_at, process_after) WHERE status = 0;
CREATE INDEX idx_for_queue_depth ON messages (queue, is_dlq);
CREATE INDEX idx_expired ON messages (status, is_dlq, expires_after);
CREATE INDEX idx_for_requeueuing ON messages (queue, status);
"""
FORQ_COLUMNS = (
    *("id", "queue", "is_dlq", "content", "status", "attempts", "process_after", "processing_started_at"),
    *("failure_reason", "received_at", "updated_at", "expires_after"),
)
LONG_AGO_MS = 1_700_000_000_000
FAR_AHEAD_MS = 4_000_000_000_000

Row = tuple[object, ...]


def forq_rows(rng: random.Random, count: int) -> list[Row]:
    """Messages in every state that Forq knows, several a millisecond, in no order."""
    return [_forq_row(rng, LONG_AGO_MS + rng.randrange(count)) for _ in range(count)]


def _forq_row(rng: random.Random, received_at: int) -> Row:
    status = rng.choice((0, 0, 0, 1, 2))
    is_dlq = rng.random() < 0.2
    return (
        _uuid7(rng, received_at),
        rng.choice(("emails", "orders", "A.b_c-1")) + ("-dlq" if is_dlq else ""),
        is_dlq,
        rng.choice(("", "hello", "grüße 🎃", "x" * rng.randrange(5_000))),
        status,
        rng.randrange(6),
        FAR_AHEAD_MS if status == 0 and rng.random() < 0.3 else received_at + rng.randrange(1_000),
        received_at + 500 if status == 1 else None,
        "max_attempts_reached" if is_dlq else None,
        received_at,
        received_at + rng.randrange(1_000),
        received_at + 86_400_000,
    )


def _uuid7(rng: random.Random, received_at: int) -> str:
    tail = f"{rng.getrandbits(62) | 1 << 63:016x}"
    stamp = f"{received_at:012x}"
    return f"{stamp[:8]}-{stamp[8:]}-7{rng.randrange(4096):03x}-{tail[:4]}-{tail[4:]}"


def make_forq_file(
    path: str,
    rows: list[Row],
    *,
    without_rowid: bool = True,
    migrate_table: bool = True,
    more_columns: str = "",
    log: bool = False,
) -> None:
    """A file as Forq leaves it. log: whether part of it is still in the write-ahead log."""
    connection = apsw.Connection(path)
    connection.pragma("journal_mode", "WAL")
    options = "WITHOUT ROWID" if without_rowid else ""
    connection.execute(FORQ_SCHEMA.format(more_columns=more_columns, options=options))
    if migrate_table:
        connection.execute("CREATE TABLE schema_migrations (version uint64, dirty bool)")
        connection.execute("INSERT INTO schema_migrations VALUES (1, 0)")
    insert = f"INSERT INTO messages ({', '.join(FORQ_COLUMNS)}) VALUES ({', '.join('?' * 12)})"
    half = len(rows) // 2
    with connection:
        connection.executemany(insert, rows[:half])
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    with connection:
        connection.executemany(insert, rows[half:])
    if log:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()
    assert (os.path.exists(path + "-wal") and os.path.getsize(path + "-wal") > 0) == log
