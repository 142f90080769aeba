"""A file of the first release is brought up to date in place: every message kept, numbers and counts right."""

from contextlib import closing

import apsw
import pytest

from forq_trio.model.commands import Ack, Claim, Produce
from forq_trio.model.errors import StorageOpenError
from forq_trio.model.messages import NewMessage, QueueCounts, Receipt
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files import migrations
from forq_trio.storage.sqlite.files.check import backup_file, check_file, verify_backup
from forq_trio.storage.sqlite.files.restore import restore_file
from support.actors import T0
from support.batches import do
from support.old_files import make_version_1


@pytest.fixture
def version_1(path) -> str:
    """A file as the first release leaves it."""
    make_version_1(path)
    return path


def test_a_released_migration_is_never_changed() -> None:
    """Files in the field carry the checksum of what they had."""
    assert migrations.KNOWN[0].checksum == "01e48f6cf5f6a5de4dad685104c5aec3ad4897bc439477b895bf9b004b0046ef"


def test_every_message_comes_along_with_its_size_counted(version_1, read) -> None:
    columns = (
        "seq, id, queue, is_dlq, status, attempts, process_after, processing_started_at, failure_reason, received_at, "
        "updated_at, expires_after, priority, position, lease_until, receipt, dedup_id, max_attempts, source_queue, "
        "last_error, content"
    )
    before = read(version_1, f"SELECT {columns} FROM messages ORDER BY seq")
    with closing(SqliteEngine(version_1, EngineSettings(), "normal")) as engine:
        assert engine.snapshot().counts == {
            "q": QueueCounts(ready=1, processing=1, delayed=1, bytes=8),
            "q-dlq": QueueCounts(ready=1, bytes=4),
            "empty": QueueCounts(),
        }
        assert engine.snapshot().settings == {}
        assert engine.snapshot().tokens == {}
    assert read(version_1, f"SELECT {columns} FROM messages ORDER BY seq") == before
    assert read(version_1, "SELECT id, bytes FROM messages ORDER BY seq") == [
        ("ready", 7),
        ("leased", 1),
        ("later", 0),
        ("dead", 4),
    ]
    assert check_file(version_1).problems == []
    assert read(version_1, "PRAGMA user_version") == [(len(migrations.KNOWN),)]


@pytest.mark.parametrize("version", range(1, len(migrations.KNOWN)))
def test_a_file_and_a_backup_of_an_earlier_schema_are_sound_and_restored(tmp_path, version) -> None:
    """An operator upgrades, and then needs the backup of the night before."""
    path, backup, restored = (str(tmp_path / name) for name in ("old.db", "backup.db", "restored.db"))
    make_version_1(path)
    with closing(apsw.Connection(path)) as connection, migrations.immediate(connection):
        migrations.apply(connection, migrations.KNOWN[1:version])
    backup_file(path, backup)
    for report in (check_file(path), verify_backup(backup)):
        assert (report.problems, report.messages, report.schema_version) == ([], 4, version)
        assert report.is_older
    restore_file(backup, restored)
    with closing(SqliteEngine(restored, EngineSettings(), "normal")) as engine:
        assert do(engine, Produce("q", NewMessage("new"))).sequence == 41
    report = check_file(restored)
    assert (report.problems, report.messages, report.is_older) == ([], 5, False)


def test_a_file_of_a_newer_version_is_not_called_damaged(version_1) -> None:
    with closing(SqliteEngine(version_1, EngineSettings(), "normal")):
        pass
    newer = migrations.KNOWN[-1]._replace(version=len(migrations.KNOWN) + 1, name="later", sql="SELECT 1")
    with closing(apsw.Connection(version_1)) as connection, migrations.immediate(connection):
        migrations.apply(connection, [newer])
    with pytest.raises(StorageOpenError, match="newer version of forq-trio"):
        check_file(version_1)


def test_numbers_go_on_above_the_highest_ever_given_out(version_1) -> None:
    """Also when the message that had it is gone."""
    with closing(SqliteEngine(version_1, EngineSettings(), "normal")) as engine:
        assert do(engine, Produce("q", NewMessage("new"))).sequence == 41


def test_what_was_under_way_goes_on(version_1) -> None:
    """Receipts stay current, deduplication ids known, bounds kept."""
    with closing(SqliteEngine(version_1, EngineSettings(), "normal")) as engine:
        assert do(engine, Ack("q", (Receipt(5, 77),))) == (True,)
        again = do(engine, Produce("q", NewMessage("again", deduplication_id="once")))
        assert (again.id, again.sequence, again.duplicate) == ("leased", 5, True)
        (delivery,) = do(engine, Claim("q", 9, None))
        assert (delivery.id, delivery.attempts, delivery.priority) == ("ready", 3, 7)
        assert delivery.first_received_at == T0
        with closing(engine.open_reader()) as reader:
            (dead,) = reader.browse("q-dlq", None, 9)
        assert (dead.source_queue, dead.failure_reason, dead.dead_lettered_at) == (
            "q",
            "message_expired",
            None,
        )


def test_an_empty_file_of_version_1_is_brought_up_to_date_too(path) -> None:
    with closing(apsw.Connection(path)) as connection, migrations.immediate(connection):
        migrations.apply(connection, migrations.KNOWN[:1])
    with closing(SqliteEngine(path, EngineSettings(), "normal")) as engine:
        assert do(engine, Produce("q", NewMessage("first"))).sequence == 1
    assert check_file(path).problems == []


def test_a_new_file_and_a_migrated_one_have_the_same_tables(version_1, tmp_path, read) -> None:
    SqliteEngine(version_1, EngineSettings(), "normal").close()
    new = str(tmp_path / "new.db")
    SqliteEngine(new, EngineSettings(), "normal").close()
    schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
    without_statistics = [row for row in read(version_1, schema) if "sqlite_stat" not in row[1]]
    assert without_statistics == [row for row in read(new, schema) if "sqlite_stat" not in row[1]]
