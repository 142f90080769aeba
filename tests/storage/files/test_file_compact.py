"""`forq compact`: a file is written anew without free pages, and can give free pages back from then on."""

import os
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.sqlite.files.check import check_file
from forq_trio.storage.sqlite.files.compact import compact_file
from forq_trio.storage.sqlite.files.open import open_database

INSERT = """
INSERT INTO messages (id, queue, process_after, received_at, updated_at, expires_after, position, content, bytes)
VALUES (?1, 'emails', 1, 1, 1, 1, 1, ?2, length(?2))
"""
COUNT = """
INSERT INTO queue_counts (queue, ready, processing, failed, delayed, held, bytes, updated_at, last_seq)
VALUES ('emails', 100, 0, 0, 0, 0, 300000, 1, 1000000)
"""
READ = "SELECT seq, id, content FROM messages ORDER BY seq"


def fill(connection: apsw.Connection) -> None:
    """A hundred messages, and the free pages of 1,900 that have gone."""
    with connection:
        connection.executemany(INSERT, [(f"first-{n}", "x" * 3_000) for n in range(2_000)])
        connection.execute("DELETE FROM messages WHERE seq % 20 > 0")
        connection.execute(COUNT)


@pytest.fixture
def old_file(path: str) -> str:
    """A file that cannot give free pages back, as one that Forq made."""
    open_database(path, "full").close()
    with closing(apsw.Connection(path)) as connection:
        connection.pragma("journal_mode", "DELETE")
        connection.pragma("auto_vacuum", 0)
        connection.execute("VACUUM")
        assert connection.pragma("auto_vacuum") == 0
        fill(connection)
    return path


def test_a_new_file_gives_free_pages_back(path, database) -> None:
    assert database.connection.pragma("auto_vacuum") == 2


def test_an_old_file_is_written_anew_with_every_message(path, old_file, read) -> None:
    messages = read(path, READ)
    steps: list[tuple[int, int]] = []
    compacted = compact_file(path, lambda done, total: steps.append((done, total)))
    assert compacted.after == os.path.getsize(path) < compacted.before / 5
    assert steps[-1][0] == steps[-1][1]
    assert read(path, READ) == messages
    assert len(messages) == 100
    assert check_file(path).problems == []
    with closing(open_database(path, "full")) as database:
        assert database.connection.pragma("auto_vacuum") == 2
        assert database.connection.pragma("freelist_count") == 0


def test_what_a_killed_server_left_in_the_log_comes_along(path, tmp_path, read) -> None:
    with closing(open_database(path, "full")) as database:
        fill(database.connection)
        left = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for name, content in left.items():
        if not name.endswith((".lock", "-shm")):
            (tmp_path / name).write_bytes(content)
    assert os.path.getsize(f"{path}-wal") > 0
    compact_file(path)
    assert not os.path.exists(f"{path}-wal")
    assert len(read(path, READ)) == 100
    assert {file.name for file in tmp_path.iterdir()} == {"forq.db", "forq.db.lock"}


def test_it_can_be_read_by_its_user_alone(path, old_file) -> None:
    Path(path).chmod(0o644)
    compact_file(path)
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_it_goes_where_a_symbolic_link_leads(path, old_file, tmp_path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    compact_file(str(link))
    assert link.is_symlink()
    assert check_file(path).messages == 100


def test_a_file_that_a_server_or_another_program_has_is_left(path, old_file) -> None:
    before = Path(path).read_bytes()
    with (
        closing(open_database(path, "full")),
        pytest.raises(StorageOpenError, match="in use by another forq"),
    ):
        compact_file(path)
    with closing(apsw.Connection(path)) as other:
        other.execute("SELECT count(*) FROM messages").fetchall()
        with pytest.raises(StorageOpenError, match="is locked by another process"):
            compact_file(path)
    assert len(before) == os.path.getsize(path)


def with_second_name(path: str) -> None:
    os.link(path, f"{path}.second")


def of_another_program(path: str) -> None:
    os.unlink(path)
    with closing(apsw.Connection(path)) as connection:
        connection.execute("CREATE TABLE x (y)")


def damaged(path: str) -> None:
    with open(path, "r+b") as file:
        file.seek(4096 * 100)
        file.write(b"\xa5" * (os.path.getsize(path) - 4096 * 100))


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (os.unlink, "does not exist"),
        (lambda path: os.truncate(path, 0), "is empty"),
        (with_second_name, "has a second name"),
        (of_another_program, "of another program"),
        (lambda path: Path(path).write_text("no database " * 100), "is not a SQLite database"),
        (damaged, "is damaged|damaged, so its source is"),
    ],
)
def test_what_cannot_be_compacted_is_left_as_it_is(path, old_file, fingerprint, harm, reason) -> None:
    harm(path)
    before = fingerprint()
    with pytest.raises(StorageOpenError, match=reason):
        compact_file(path)
    after = fingerprint()
    after.pop("forq.db.lock", None)
    before.pop("forq.db.lock", None)
    assert after == before


def test_a_file_of_forq_is_migrated_first(path, make_forq_file, forq_rows) -> None:
    make_forq_file(forq_rows(5))
    with pytest.raises(StorageOpenError, match="`forq serve` migrates it"):
        compact_file(path)
    open_database(path, "full").close()
    compact_file(path)
    assert check_file(path).messages == 5


def test_an_interrupted_one_leaves_the_old_file_and_nothing_beside_it(path, old_file, read, tmp_path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compact_file(path, interrupt)
    assert not list(tmp_path.glob("*.partial*"))
    assert len(read(path, READ)) == 100
    compact_file(path)
