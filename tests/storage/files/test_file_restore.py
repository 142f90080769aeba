"""`forq restore`: a backup takes the place of a database, which is kept; nothing of the old one gets into the new."""

import os
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from forq_trio.model.commands import Produce
from forq_trio.model.errors import StorageOpenError
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import Batch, EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.check import backup_file, check_file
from forq_trio.storage.sqlite.files.open import open_database
from forq_trio.storage.sqlite.files.restore import restore_file


def send(path: str, *contents: str) -> SqliteEngine:
    """The engine of a database, to which these messages were sent."""
    engine = SqliteEngine(path, EngineSettings())
    engine.execute_batch(
        Batch([Produce("q", NewMessage(content)) for content in contents], 1_700_000_000_000)
    )
    engine.commit()
    return engine


def contents(path: str) -> list[str]:
    """The messages of a database that nobody has open."""
    with closing(open_database(path, "full")) as database:
        return [text for (text,) in database.connection.execute("SELECT content FROM messages ORDER BY seq")]


def kill(engine: SqliteEngine, path: str) -> None:
    """Leave the database as the end of its process does: with its log."""
    left = {file.name: file.read_bytes() for file in Path(path).parent.glob(f"{Path(path).name}*")}
    engine.close()
    for name, content in left.items():
        if not name.endswith((".lock", "-shm")):
            Path(path).with_name(name).write_bytes(content)
    assert os.path.getsize(f"{path}-wal") > 0


@pytest.fixture
def backup(tmp_path) -> str:
    """A backup with one message."""
    with closing(send(str(tmp_path / "source.db"), "from the backup")):
        backup_file(str(tmp_path / "source.db"), str(tmp_path / "backup.db"))
    return str(tmp_path / "backup.db")


@pytest.fixture
def place(tmp_path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def path(place) -> str:
    return str(place / "forq.db")


def test_the_backup_is_the_database_and_what_was_there_is_kept_whole(path, place, backup) -> None:
    kill(send(path, *map(str, range(300))), path)
    restored = restore_file(backup, path)
    assert restored.size == os.path.getsize(path) == os.path.getsize(backup)
    assert restored.replaced is not None
    assert restored.replaced.startswith(f"{path}.replaced-")
    assert {file.name for file in place.iterdir()} == {
        *("forq.db", "forq.db.lock"),
        os.path.basename(restored.replaced),
    }
    assert {file.stat().st_mode & 0o777 for file in place.iterdir()} == {0o600}
    assert contents(path) == ["from the backup"]
    assert check_file(path).problems == []
    assert contents(restored.replaced) == [*map(str, range(300))]
    assert Path(backup).exists()


def test_where_nothing_was_the_directory_is_made(tmp_path, backup) -> None:
    path = str(tmp_path / "new" / "place" / "forq.db")
    restored = restore_file(backup, path)
    assert restored.replaced is None
    assert contents(path) == ["from the backup"]
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700


def test_a_log_alone_that_somebody_left_does_not_get_into_the_database(path, place, backup) -> None:
    kill(send(path, *"abc"), path)
    os.unlink(path)
    restored = restore_file(backup, path)
    assert os.path.getsize(f"{restored.replaced}-wal") > 0
    assert contents(path) == ["from the backup"]


def test_a_database_that_is_damaged_is_kept_as_it_is_with_its_log(path, backup) -> None:
    Path(path).write_bytes(b"\xa5" * 20_000)
    Path(f"{path}-wal").write_bytes(b"what was its log" * 1_000)
    restored = restore_file(backup, path)
    assert contents(path) == ["from the backup"]
    assert Path(f"{restored.replaced}").read_bytes() == b"\xa5" * 20_000
    assert Path(f"{restored.replaced}-wal").read_bytes() == b"what was its log" * 1_000


def test_it_goes_where_a_symbolic_link_leads(path, place, tmp_path, backup) -> None:
    send(path, "old").close()
    link = tmp_path / "link.db"
    link.symlink_to(path)
    restore_file(backup, str(link))
    assert link.is_symlink()
    assert contents(path) == ["from the backup"]


def test_a_database_that_a_server_has_open_is_not_replaced(path, backup) -> None:
    with closing(send(path, "old")):
        with pytest.raises(StorageOpenError, match="is in use by another forq server"):
            restore_file(backup, path)
        assert check_file(path).messages == 1


def test_a_database_that_another_program_has_open_is_not_replaced(path, backup) -> None:
    """Forq, for example, which knows nothing of our lock."""
    send(path, "old").close()
    with closing(apsw.Connection(path)) as other:
        other.execute("SELECT count(*) FROM messages").fetchall()
        with pytest.raises(StorageOpenError, match="is locked by another process"):
            restore_file(backup, path)
        assert other.execute("SELECT content FROM messages").get == "old"


def test_after_a_cut_between_the_two_names_it_is_done_again(path, backup, place) -> None:
    send(path, "old").close()
    os.link(path, f"{path}.replaced-20260102T030405Z")
    with pytest.raises(StorageOpenError, match="has a second name"):
        open_database(path, "full")
    restore_file(backup, path)
    assert contents(path) == ["from the backup"]


def test_a_backup_with_a_log_beside_it_is_refused_with_the_way_to_restore_it(
    path, tmp_path, fingerprint
) -> None:
    """Somebody copied the files of a server that was killed."""
    copied = str(tmp_path / "copied.db")
    kill(send(copied, *"abc"), copied)
    send(path, "old").close()
    with pytest.raises(StorageOpenError, match="has a log beside it") as refused:
        restore_file(copied, path)
    assert contents(path) == ["old"]
    assert f"`forq backup --db {copied} TARGET`" in str(refused.value)
    backup_file(copied, str(tmp_path / "one.db"))
    restore_file(str(tmp_path / "one.db"), path)
    assert contents(path) == [*"abc"]


def miscounted(file: Path) -> None:
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("UPDATE queue_counts SET ready = 17")


def cut_short(file: Path) -> None:
    os.truncate(file, 8_192)


def with_no_table(file: Path) -> None:
    file.unlink()
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("CREATE TABLE x (y); DROP TABLE x")


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (miscounted, "is not sound: queue q holds"),
        (cut_short, r"is damaged|is not sound"),
        (with_no_table, "holds no queue"),
        (lambda file: os.truncate(file, 0), "is empty"),
        (lambda file: file.write_text("no database " * 100), "is not a SQLite database"),
        (Path.unlink, "does not exist"),
        (lambda file: (file.unlink(), file.mkdir()), "is not a file"),
    ],
)
def test_what_is_no_sound_backup_is_refused_and_nothing_changed(
    path, backup, fingerprint, harm, reason
) -> None:
    send(path, "old").close()
    harm(Path(backup))
    before = fingerprint()
    with pytest.raises(StorageOpenError, match=reason):
        restore_file(backup, path)
    assert fingerprint() == before


def test_a_database_is_not_its_own_backup(path, place, fingerprint) -> None:
    send(path, "old").close()
    link = place / "link.db"
    link.symlink_to(path)
    before = fingerprint()
    with pytest.raises(StorageOpenError, match="is the database itself"):
        restore_file(str(link), path)
    assert fingerprint() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_does_not_take_the_database_from_its_owner(path, place, backup, fingerprint) -> None:
    """The server could not open what root puts there."""
    os.chown(place, 65534, 65534)
    with pytest.raises(StorageOpenError, match=r"belongs to nobody: replace .* as that user"):
        restore_file(backup, path)
    assert fingerprint() == {}
    os.chown(place, 0, 0)
    send(path, "old").close()
    os.chown(path, 12_345, 12_345)
    before = fingerprint()
    with pytest.raises(StorageOpenError, match="belongs to user 12345"):
        restore_file(backup, path)
    assert fingerprint() == before


def test_a_file_of_forq_is_restored_and_migrated_by_the_next_start(
    path, make_forq_file, forq_rows, tmp_path
) -> None:
    """The copy that a migration leaves is the way back."""
    make_forq_file(forq_rows(50))
    before = shutil.copy(path, tmp_path / "of-forq.db")
    open_database(path, "full").close()
    restore_file(str(before), path)
    with closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        assert not connection.table_exists("main", "queue_counts")
        assert connection.execute("SELECT count(*) FROM messages").get == 50
    assert len(contents(path)) == 50
