"""`forq check`: every broken promise about a file is found, and a sound file, also one in use, has no problems."""

from contextlib import closing

import apsw
import pytest

from forq_trio.model.commands import LeaseMessages, OpenConsumer
from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.check import check_file
from forq_trio.storage.sqlite.files.migrations import KNOWN
from forq_trio.storage.sqlite.files.open import open_database
from support.batches import do, run
from support.words import send

FILL = """
INSERT INTO messages (id, queue, is_dlq, status, process_after, received_at, updated_at, expires_after, position,
                      lease_until, attributes, bytes, content)
VALUES ('a', 'emails', 0, 0, 1, 1, 1, 1, 1, NULL, NULL, 1, 'x'), ('b', 'emails', 0, 1, 1, 1, 1, 1, 2, 5, NULL, 2, 'ü'),
       ('c', 'emails', 0, 3, 9, 1, 1, 1, 3, NULL, '{"a":"b"}', 3, 'x'),
       ('d', 'emails-dlq', 1, 2, 1, 1, 1, 1, 4, NULL, NULL, 1, 'x'),
       ('e', 'emails-dlq', 1, 4, 1, 1, 1, 1, 5, NULL, NULL, 0, '');
INSERT INTO queue_counts (queue, ready, processing, failed, delayed, held, bytes, updated_at, last_seq)
VALUES ('emails', 1, 1, 0, 1, 0, 6, 1, 3), ('emails-dlq', 0, 0, 1, 0, 1, 1, 1, 5), ('idle', 0, 0, 0, 0, 0, 0, 1, 0);
INSERT INTO queues VALUES ('emails', '{"leaseMs":1}', 1);
INSERT INTO dedup VALUES ('emails', 'once', 'a', 1, 99);
"""


@pytest.fixture
def filled(database):
    database.connection.execute(FILL)
    return database


def test_a_sound_file_of_a_running_server(path, filled) -> None:
    report = check_file(path)
    assert report.ok
    assert (report.problems, report.messages, report.queues) == ([], 5, 2)
    assert report.schema_version == KNOWN[-1].version


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("UPDATE messages SET status = 5 WHERE seq = 1", "message 1 has the unknown status 5"),
        ("UPDATE messages SET lease_until = NULL WHERE seq = 2", "message 2 has status 1 and no lease"),
        ("UPDATE messages SET lease_until = 5 WHERE seq = 3", "message 3 has status 3 and a lease"),
        (
            "UPDATE messages SET is_dlq = 0 WHERE seq = 4",
            "message 4 of queue emails-dlq is marked is_dlq = 0",
        ),
        (
            "UPDATE messages SET seq = -1 WHERE seq = 1",
            "message -1 is not among the sequence numbers given out",
        ),
        ("UPDATE queue_counts SET last_seq = 3", "message 4 is not among the sequence numbers given out"),
        ("UPDATE messages SET position = 'first' WHERE seq = 1", "message 1 has a column of the wrong type"),
        ("UPDATE messages SET content = x'00' WHERE seq = 1", "message 1 has a column of the wrong type"),
        ("UPDATE messages SET lease_until = 'x' WHERE seq = 2", "message 2 has a column of the wrong type"),
        ("UPDATE messages SET received_at = 'x' WHERE seq = 1", "message 1 has a column of the wrong type"),
        (
            "UPDATE queue_counts SET ready = 2 WHERE queue = 'emails'",
            "queue emails holds 1 ready, 1 processing, 0 failed, 1 delayed, 0 held, 6 bytes "
            "but is counted as 2, 1, 0, 1, 0, 6",
        ),
        (
            "DELETE FROM queue_counts WHERE queue = 'emails-dlq'",
            "queue emails-dlq holds 0 ready, 0 processing, 1 failed, 0 delayed, 1 held, 1 bytes "
            "but is counted as 0, 0, 0, 0, 0, 0",
        ),
        (
            "UPDATE queue_counts SET failed = 1 WHERE queue = 'idle'",
            "queue idle holds 0 ready, 0 processing, 0 failed, 0 delayed, 0 held, 0 bytes "
            "but is counted as 0, 0, 1, 0, 0, 0",
        ),
        (
            "UPDATE queue_counts SET held = 0, bytes = 9 WHERE queue = 'emails-dlq'",
            "queue emails-dlq holds 0 ready, 0 processing, 1 failed, 0 delayed, 1 held, 1 bytes "
            "but is counted as 0, 0, 1, 0, 0, 9",
        ),
        ("UPDATE messages SET bytes = 1 WHERE seq = 2", "message 2 of 2 bytes is counted as 1"),
        ("UPDATE messages SET bytes = 3 WHERE seq = 2", "message 2 of 2 bytes is counted as 3"),
        ("UPDATE messages SET bytes = 0 WHERE seq = 3", "message 3 of 1 bytes is counted as 0"),
        ("UPDATE queues SET settings = '{'", "the settings of queue emails cannot be read"),
        ("UPDATE queues SET settings = '1'", "the settings of queue emails cannot be read"),
        (
            "UPDATE dedup SET seq = 6",
            "the deduplication id once of queue emails names no message that ever was",
        ),
    ],
)
def test_a_broken_promise_is_named(path, filled, damage, problem) -> None:
    filled.connection.execute(damage)
    report = check_file(path)
    assert not report.ok
    assert problem in report.problems


def test_a_damaged_page_is_found(path, filled) -> None:
    with filled.connection as connection:
        connection.executemany(
            "INSERT INTO dedup VALUES ('q', ?, 'a', 1, 1)", [(f"{n:0100}",) for n in range(500)]
        )
    filled.close()
    with open(path, "r+b") as file:
        file.seek(-4096, 2)
        file.write(b"\xa5" * 4096)
    assert not check_file(path).ok


def test_problems_of_a_kind_are_bounded(path, filled) -> None:
    with filled.connection as connection:
        connection.executemany(
            "INSERT INTO queue_counts (queue, ready, processing, failed, delayed, updated_at) "
            "VALUES (?, 1, 1, 1, 1, 1)",
            [(str(n),) for n in range(1_000)],
        )
    assert len(check_file(path).problems) == 20


def test_a_forq_file_can_be_checked_before_it_is_taken_over(path, make_forq_file, forq_rows) -> None:
    make_forq_file(forq_rows(100))
    report = check_file(path)
    assert report.ok
    assert (report.messages, report.schema_version) == (100, 0)


def test_what_is_no_database_of_ours_cannot_be_checked(path, tmp_path) -> None:
    with pytest.raises(StorageOpenError, match="does not exist"):
        check_file(path)
    with pytest.raises(StorageOpenError, match="is not a file"):
        check_file(str(tmp_path))
    with closing(apsw.Connection(path)) as connection:
        connection.execute("CREATE TABLE users (id)")
    with pytest.raises(StorageOpenError, match="another program"):
        check_file(path)


def test_changed_migrations_are_refused(path) -> None:
    with closing(open_database(path, "full")) as database:
        database.connection.execute("UPDATE migrations SET checksum = ''")
        with pytest.raises(StorageOpenError, match="differs from the one known here"):
            check_file(path)


def test_messages_that_only_a_lease_has_are_counted_with_their_queues(path) -> None:
    with closing(SqliteEngine(str(path), EngineSettings())) as engine:
        run(engine, send("x", "emails"), send("y", "emails"), send("z", "reports"))
        do(engine, OpenConsumer("emails", "k"))
        do(engine, LeaseMessages("emails", "k", 1, 1, 100, 10**6))
        report = check_file(path)
    assert (report.problems, report.messages, report.queues) == ([], 3, 2)
