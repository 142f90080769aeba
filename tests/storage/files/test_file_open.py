"""Opening: the settings of the connections, the lock, and every file that must be refused untouched."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Ping
from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.compact import compact_file
from forq_trio.storage.sqlite.files.copy import copy_database
from forq_trio.storage.sqlite.files.open import open_checkpointer, open_database, open_reader
from forq_trio.storage.sqlite.files.restore import restore_file
from support.batches import do


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("normal", 1)])
def test_settings_of_the_write_connection(path, durability, synchronous) -> None:
    """F14."""
    with closing(open_database(path, durability)) as database:
        connection = database.connection
        assert connection.pragma("journal_mode") == "wal"
        assert connection.pragma("synchronous") == synchronous
        assert connection.pragma("temp_store") == 2
        assert connection.pragma("mmap_size") == 0
        assert connection.pragma("wal_autocheckpoint") == 0
        assert connection.pragma("analysis_limit") == limits.ANALYSIS_ROWS_MAX
        assert connection.pragma("journal_size_limit") == limits.LOG_BYTES_KEPT_MAX
        assert connection.pragma("cache_size") * -1024 == limits.PAGE_CACHE_BYTES


def test_a_reader_sees_commits_and_cannot_write(path, database) -> None:
    with closing(open_reader(path)) as reader:
        database.connection.execute("INSERT INTO queues VALUES ('q', '{}', 0)")
        assert reader.execute("SELECT queue FROM queues").fetchall() == [("q",)]
        with pytest.raises(apsw.ReadOnlyError):
            reader.execute("DELETE FROM queues")


def test_a_checkpointer_empties_the_log_of_a_running_server(path, database) -> None:
    database.connection.execute("INSERT INTO queues VALUES ('q', '{}', 0)")
    assert os.path.getsize(path + "-wal") > 0
    with closing(open_checkpointer(path)) as checkpointer:
        checkpointer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    assert os.path.getsize(path + "-wal") == 0


def test_a_second_server_is_refused_by_any_name_of_the_file(path, database, tmp_path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    (tmp_path / "x").mkdir()
    for name in (path, str(link), str(tmp_path / "x" / ".." / "forq.db"), os.path.relpath(path)):
        with pytest.raises(StorageOpenError, match="is in use by another forq server"):
            open_database(name, "full")
    database.close()
    open_database(str(link), "full").close()


def test_close_may_be_called_twice_and_frees_only_its_own_lock(path) -> None:
    first = open_database(path, "full")
    first.close()
    with closing(open_database(path, "full")):
        first.close()
        with pytest.raises(StorageOpenError, match="in use"):
            open_database(path, "full")


HOLD = """
import sys
from forq_trio.storage.sqlite.files.open import open_database
database = open_database(sys.argv[1], "full")
database.connection.execute("INSERT INTO queues VALUES ('q', '{}', 5)")
print("open", flush=True)
sys.stdin.read()
"""


def test_the_lock_ends_with_the_process_however_it_ends(path, read) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StorageOpenError, match="in use"):
            open_database(path, "full")
        holder.send_signal(signal.SIGKILL)
    assert os.path.getsize(path + "-wal") > 0
    open_database(path, "full").close()
    assert read(path, "SELECT * FROM queues") == [("q", "{}", 5)]


@contextmanager
def held_elsewhere(path: str) -> Iterator[None]:
    """Another process has the database open, and its lock file was removed."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout.readline() == "open\n"
        os.unlink(path + ".lock")
        yield
        holder.stdin.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the lock file is the only lock")
def test_without_its_lock_file_a_database_is_locked_all_the_same(path, tmp_path) -> None:
    open_database(path, "full").close()
    copy_database(source := open_reader(path), backup := str(tmp_path / "backup.db"))
    source.close()
    with held_elsewhere(path):
        for refused in (
            lambda: open_database(path, "full"),
            lambda: compact_file(path),
            lambda: restore_file(backup, path),
        ):
            with pytest.raises(StorageOpenError, match="in use by another forq server"):
                refused()
        aside = tmp_path / "elsewhere"
        aside.mkdir()
        os.rename(path, aside / "other.db")
        with pytest.raises(StorageOpenError, match="in use by another forq server"):
            open_database(str(aside / "other.db"), "full")
        os.rename(aside / "other.db", path)
    open_database(path, "full").close()


LOCK = """
import apsw, sys
apsw.Connection(sys.argv[1]).execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").fetchall()
"""


@pytest.mark.parametrize("in_log", [False, True])
def test_a_second_server_of_one_process_is_refused_and_leaves_the_locks_of_the_first(path, in_log) -> None:
    """Closing any descriptor of a file ends all locks of SQLite that its process has on it."""
    open_database(path, "full").close()
    with closing(open_database(path, "full")) as first:
        first.connection.execute("SELECT count(*) FROM queues").fetchall()
        if in_log:
            first.connection.execute("INSERT INTO queues VALUES ('q', '{}', 5)")
        os.unlink(path + ".lock")
        for refused in (lambda: open_database(path, "full"), lambda: compact_file(path)):
            with pytest.raises(StorageOpenError, match="in use by another forq server"):
                refused()
        other = subprocess.run([sys.executable, "-c", LOCK, path], stderr=subprocess.PIPE, text=True)
        assert "BusyError" in other.stderr


def test_a_lock_file_that_is_removed_before_it_is_locked_locks_nothing(path, monkeypatch) -> None:
    """The next server would make another one, and lock it as well."""
    calls = []

    def removed_before(descriptor: int, operation: int) -> None:
        calls.append(descriptor)
        if len(calls) == 1:
            os.unlink(path + ".lock")
        flock(descriptor, operation)

    flock = fcntl.flock
    monkeypatch.setattr("fcntl.flock", removed_before)
    with closing(open_database(path, "full")) as database:
        assert database.names.problem() is None
        assert os.path.exists(path + ".lock")
        assert len(calls) >= 2


def _directory(path: Path) -> None:
    path.mkdir()


def _text(path: Path) -> None:
    path.write_text("These are my notes, and they are long enough to fill a header. " * 100)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _sqlite(path: Path, *statements: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        for statement in statements:
            connection.execute(statement)


def _foreign(path: Path) -> None:
    _sqlite(path, "CREATE TABLE users (id INTEGER PRIMARY KEY)")


def _foreign_in_use(path: Path) -> None:
    _sqlite(path, "PRAGMA journal_mode = WAL", "CREATE TABLE users (id INTEGER PRIMARY KEY)")


def _foreign_view(path: Path) -> None:
    _sqlite(path, "CREATE VIEW one AS SELECT 1")


def _other_messages(path: Path) -> None:
    _sqlite(path, "CREATE TABLE messages (id TEXT PRIMARY KEY, queue TEXT, body TEXT)")


def _truncated(path: Path) -> None:
    open_database(str(path), "full").close()
    path.with_name("forq.db.lock").unlink()
    os.truncate(path, 8192)


def _scribbled(path: Path) -> None:
    open_database(str(path), "full").close()
    path.with_name("forq.db.lock").unlink()
    content = bytearray(path.read_bytes())
    content[100:8192] = b"\xa5" * (8192 - 100)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (_directory, "is a directory, not a database file"),
        (_text, "is not a SQLite database"),
        (_pipe, "is not a regular file"),
        (_foreign, "is a SQLite database of another program"),
        (_foreign_in_use, "is a SQLite database of another program"),
        (_foreign_view, "is a SQLite database of another program"),
        (_other_messages, "is a SQLite database of another program"),
        (_truncated, "is damaged: SQLite cannot read it"),
        (_scribbled, "is damaged: SQLite cannot read it"),
    ],
)
def test_what_is_no_database_of_ours_is_refused_and_left_untouched(
    path, fingerprint, make, complaint
) -> None:
    make(Path(path))
    before = fingerprint() if make is not _pipe else set(os.listdir(Path(path).parent))
    with pytest.raises(StorageOpenError, match=complaint) as refusal:
        open_database(path, "full")
    assert str(refusal.value).count("\n") == 0
    assert path in str(refusal.value)
    assert before == (fingerprint() if make is not _pipe else set(os.listdir(Path(path).parent)))


def test_a_foreign_log_is_not_written_back(path, fingerprint) -> None:
    connection = apsw.Connection(path)
    connection.pragma("journal_mode", "WAL")
    connection.execute("CREATE TABLE users (id INTEGER PRIMARY KEY)")
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()
    os.path.exists(path + "-shm") and os.unlink(path + "-shm")
    before = fingerprint()
    with pytest.raises(StorageOpenError, match="another program"):
        open_database(path, "full")
    after = fingerprint()
    after.pop("forq.db-shm", None)
    assert after == before


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_a_path_is_needed(path) -> None:
    with pytest.raises(StorageOpenError, match="is not the path of a database file"):
        open_database(path, "full")


def test_a_missing_directory_is_made_for_this_user_alone(tmp_path) -> None:
    place = tmp_path / "missing" / "deeper" / "forq.db"
    open_database(str(place), "full").close()
    assert place.exists()
    assert [path.stat().st_mode & 0o777 for path in (place.parent, place.parent.parent)] == [0o700, 0o700]


def test_a_file_in_the_way_of_a_directory_is_named(tmp_path) -> None:
    (tmp_path / "notes").write_text("x")
    with pytest.raises(StorageOpenError, match="notes is not a directory"):
        open_database(str(tmp_path / "notes" / "forq.db"), "full")
    assert (tmp_path / "notes").read_text() == "x"


def test_only_this_user_can_read_what_is_made(path) -> None:
    old = os.umask(0)
    try:
        with closing(SqliteEngine(path, EngineSettings(), "full")) as engine:
            do(engine, Ping())
            made = {each.name: each.stat().st_mode & 0o777 for each in Path(path).parent.iterdir()}
    finally:
        os.umask(old)
    assert {"forq.db", "forq.db-wal", "forq.db-shm", "forq.db.lock"} <= set(made)
    assert set(made.values()) == {0o600}


def test_new_directories_are_synced_into_their_parents(tmp_path, monkeypatch) -> None:
    """Else a power cut could take away the directory of a file whose every commit was synced."""
    synced = []
    sync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    open_database(str(tmp_path / "a" / "b" / "forq.db"), "full").close()
    assert synced == [str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")]


@pytest.fixture
def powerless():
    """A directory that everybody may read, in a test that runs without root's powers."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        if root:
            os.seteuid(65534)
        else:
            directory.chmod(0o555)
        yield directory
        if root:
            os.seteuid(0)
        directory.chmod(0o755)


def test_a_directory_that_may_not_be_written_to_is_refused(powerless) -> None:
    with pytest.raises(StorageOpenError, match="this user may not write to"):
        open_database(str(powerless / "forq.db"), "full")
    assert list(powerless.iterdir()) == []


def test_a_file_that_may_not_be_written_to_is_refused(path) -> None:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        path = os.path.join(name, "forq.db")
        open_database(path, "full").close()
        os.chmod(path, 0o444)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            with pytest.raises(StorageOpenError, match="cannot be read and written by this user"):
                open_database(path, "full")
        finally:
            if root:
                os.seteuid(0)


def test_an_interrupted_transaction_of_the_old_kind_is_undone(path) -> None:
    """A kill during the very first start may leave a file with a rollback journal; it must not be in the way."""
    script = (
        "import apsw, os, sys\n"
        "connection = apsw.Connection(sys.argv[1])\n"
        "connection.pragma('cache_size', 1)\n"
        "connection.execute('CREATE TABLE half_done (x)')\n"
        "connection.execute('BEGIN; DROP TABLE half_done; CREATE TABLE half_made (x)')\n"
        "connection.executemany('INSERT INTO half_made VALUES (randomblob(100000))', [()] * 20)\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", script, path], check=True)
    assert os.path.getsize(path + "-journal") > 0
    with pytest.raises(StorageOpenError, match="another program"):
        open_database(path, "full")
    with closing(apsw.Connection(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("half_done",)]
