"""`forq backup` and `forq verify`: a copy of one moment, made while the server goes on."""

import os
import threading
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.sqlite.files.check import backup_file, check_file, verify_backup
from forq_trio.storage.sqlite.files.open import open_database

INSERT = """
INSERT INTO messages (id, queue, process_after, received_at, updated_at, expires_after, position, content, bytes)
VALUES (?1, 'emails', 1, 1, 1, 1, 1, ?2, length(?2))
"""
COUNT = """
INSERT INTO queue_counts (queue, ready, processing, failed, delayed, held, bytes, updated_at, last_seq)
VALUES ('emails', 3000, 0, 0, 0, 0, 9000000, 1, 1000000)
"""


@pytest.fixture
def target(tmp_path: Path) -> str:
    (tmp_path / "backups").mkdir()
    return str(tmp_path / "backups" / "monday.db")


@pytest.fixture
def filled(database):
    connection = database.connection
    with connection:
        connection.executemany(INSERT, [(f"first-{n}", "x" * 3_000) for n in range(3_000)])
        connection.execute(COUNT)
    return database


def test_a_backup_of_a_running_server_is_one_sound_file(path, filled, target) -> None:
    assert os.path.getsize(path + "-wal") > 0
    steps: list[tuple[int, int]] = []
    size = backup_file(path, target, progress=lambda done, total: steps.append((done, total)))
    assert size == os.path.getsize(target)
    assert os.stat(target).st_mode & 0o777 == 0o600
    assert os.listdir(os.path.dirname(target)) == ["monday.db"]
    report = verify_backup(target)
    assert report.ok
    assert (report.messages, report.queues) == (3_000, 1)
    assert os.listdir(os.path.dirname(target)) == ["monday.db"]
    assert len(steps) > 5
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1]
    with closing(open_database(target, "full")) as restored:
        assert restored.connection.execute("SELECT count(*) FROM messages").get == 3_000


def test_a_backup_has_no_free_pages_and_gives_free_pages_back(path, filled, target) -> None:
    """Also one of a file that cannot: what is restored from it can."""
    before = filled.connection.pragma("page_count")
    filled.connection.execute("DELETE FROM messages WHERE seq % 10 > 0")
    filled.connection.execute("UPDATE queue_counts SET ready = 300, bytes = 900000")
    assert filled.connection.pragma("freelist_count") > before / 2
    size = backup_file(path, target)
    assert size < before * 4096 / 4
    with closing(apsw.Connection(target)) as copy:
        assert copy.pragma("freelist_count") == 0
        assert copy.pragma("auto_vacuum") == 2
    assert verify_backup(target).messages == 300


def test_commits_meanwhile_neither_get_in_nor_make_it_start_again(path, filled, target) -> None:
    """After every step somebody commits: were the copy to begin anew each time, it would never end."""
    pages: list[int] = []

    def commit(done: int, total: int) -> None:
        pages.append(done)
        assert len(pages) <= total / 256 + 1
        with filled.connection:
            filled.connection.execute(INSERT, (f"later-{len(pages)}", "x" * 3_000))
            filled.connection.execute("UPDATE queue_counts SET ready = ready + 1, bytes = bytes + 1")

    backup_file(path, target, progress=commit)
    assert pages == sorted(set(pages))
    report = verify_backup(target)
    assert report.ok
    assert report.messages == 3_000
    assert check_file(path).messages == 3_000 + len(pages)


def test_a_writer_that_never_pauses_is_not_held_up(path, filled, target) -> None:
    done = threading.Event()
    commits = 0

    def write() -> None:
        nonlocal commits
        while not done.is_set():
            with filled.connection:
                filled.connection.execute(INSERT, (f"busy-{commits}", "x"))
                filled.connection.execute("UPDATE queue_counts SET ready = ready + 1, bytes = bytes + 1")
            commits += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        backup_file(path, target)
        report = verify_backup(target)
    finally:
        done.set()
        writer.join()
    assert report.problems == []
    assert 3_000 <= report.messages <= 3_000 + commits
    assert commits > 0


def test_what_has_the_name_is_kept_unless_told_otherwise(path, filled, target) -> None:
    Path(target).write_text("last week's")
    with pytest.raises(StorageOpenError, match="exists already"):
        backup_file(path, target)
    assert Path(target).read_text() == "last week's"
    backup_file(path, target, overwrite=True)
    assert verify_backup(target).ok


def test_a_database_in_use_is_never_overwritten(path, filled, target, tmp_path) -> None:
    link = tmp_path / "same.db"
    link.symlink_to(path)
    with pytest.raises(StorageOpenError, match="is the database itself"):
        backup_file(path, str(link), overwrite=True)
    backup_file(path, target)
    with closing(open_database(target, "full")) as other:
        other.connection.execute("UPDATE queue_counts SET updated_at = 2")
        with pytest.raises(StorageOpenError, match="is a database in use"):
            backup_file(path, target, overwrite=True)


def test_a_damaged_source_gives_no_backup(path, filled, target) -> None:
    filled.close()
    with open(path, "r+b") as file:
        file.seek(4096 * 2000)
        file.write(b"\xa5" * 4096 * 200)
    with pytest.raises(StorageOpenError, match="the copy is damaged, so its source is"):
        backup_file(path, target)
    assert os.listdir(os.path.dirname(target)) == []


def test_an_interrupted_backup_leaves_nothing(path, filled, target) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backup_file(path, target, progress=interrupt)
    assert os.listdir(os.path.dirname(target)) == []
    backup_file(path, target)


def test_what_cannot_be_backed_up_is_said(path, target, tmp_path) -> None:
    with pytest.raises(StorageOpenError, match="does not exist"):
        backup_file(path, target)
    Path(path).touch()
    with pytest.raises(StorageOpenError, match="there is nothing to back up"):
        backup_file(path, target)
    open_database(path, "full").close()
    with pytest.raises(StorageOpenError, match="No such file or directory"):
        backup_file(path, str(tmp_path / "missing" / "monday.db"))


def test_a_database_with_a_log_is_no_finished_backup(path, filled) -> None:
    with pytest.raises(StorageOpenError, match="has a log beside it"):
        verify_backup(path)


def test_a_damaged_backup_is_found(path, filled, target) -> None:
    backup_file(path, target)
    with closing(apsw.Connection(target)) as connection:
        connection.execute("DELETE FROM messages WHERE seq = 1")
    assert verify_backup(target).problems == [
        "queue emails holds 2999 ready, 0 processing, 0 failed, 0 delayed, 0 held, 8997000 bytes "
        "but is counted as 3000, 0, 0, 0, 0, 9000000"
    ]


@pytest.mark.parametrize("content", [b"", b"x"])
def test_an_empty_file_is_no_backup(tmp_path, content) -> None:
    """What a copy leaves that was cut off at its start."""
    (tmp_path / "empty.db").write_bytes(content)
    for check in (verify_backup, check_file):
        with pytest.raises(
            StorageOpenError, match=r"empty\.db holds no queue: it is empty, or a copy without"
        ):
            check(str(tmp_path / "empty.db"))


def test_a_copy_without_its_log_is_not_called_sound(path, tmp_path) -> None:
    copy = tmp_path / "copy.db"
    with closing(open_database(path, "full")):
        copy.write_bytes(Path(path).read_bytes())
    with pytest.raises(StorageOpenError, match="holds no queue"):
        verify_backup(str(copy))


def test_a_backup_never_takes_the_name_of_a_file_beside_a_database(path, filled, tmp_path) -> None:
    for ending in ("-wal", "-shm", "-journal", ".lock", ".reserve"):
        link = tmp_path / f"link{ending[1:]}.db"
        link.symlink_to(path + ending)
        for target in (path + ending, str(link)):
            with pytest.raises(StorageOpenError, match="belongs to the database"):
                backup_file(path, target, overwrite=True)


def test_a_backup_is_not_written_beside_a_directory_that_is_not_there(path, filled, tmp_path) -> None:
    with pytest.raises(StorageOpenError, match="is the name of a directory"):
        backup_file(path, f"{tmp_path}/nowhere/")
    assert not (tmp_path / "nowhere").exists()
