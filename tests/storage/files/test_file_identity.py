"""The names of an open database's files: every way to lose one is noticed, and its return as well."""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from forq_trio.model.errors import StorageLost, StorageOpenError
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.open import has_log, open_database

Harm = Callable[[Path], Callable[[], object] | None]
"""Does something to the file and returns what undoes it; None where nothing can."""


def removed(file: Path) -> None:
    file.unlink()


def moved(file: Path) -> Callable[[], object]:
    aside = file.rename(f"{file}.aside")
    return lambda: aside.rename(file)


def replaced(file: Path) -> Callable[[], object]:
    aside = file.rename(f"{file}.aside")
    shutil.copy(aside, file)
    return lambda: aside.replace(file)


def replaced_by_a_link(file: Path) -> Callable[[], object]:
    other = Path(f"{file}.other")
    other.write_bytes(file.read_bytes())
    aside = file.rename(f"{file}.aside")
    file.symlink_to(other)
    return lambda: aside.replace(file)


def replaced_by_a_link_to_itself(file: Path) -> Callable[[], object]:
    aside = file.rename(f"{file}.aside")
    file.symlink_to(aside)
    return lambda: aside.replace(file)


def linked(file: Path) -> Callable[[], object]:
    second = Path(f"{file}.second")
    second.hardlink_to(file)
    return second.unlink


def directory_moved(file: Path) -> Callable[[], object]:
    aside = file.parent.rename(f"{file.parent}.aside")
    return lambda: aside.rename(file.parent)


SAID = {
    removed: "was removed or moved",
    moved: "was removed or moved",
    replaced: "was replaced by another file",
    replaced_by_a_link: "was replaced by another file",
    replaced_by_a_link_to_itself: "was replaced by another file",
    linked: "has a second name (a hard link)",
    directory_moved: "was removed or moved",
}


@pytest.fixture
def place(tmp_path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "forq.db"


@pytest.mark.parametrize(
    ("harm", "ending"),
    [(harm, "") for harm in SAID]
    + [(harm, ending) for harm in (removed, replaced, linked) for ending in ("-wal", "-shm", ".lock")],
)
def test_every_loss_of_a_name_is_noticed_and_its_end_too(place: Path, harm: Harm, ending: str) -> None:
    with closing(open_database(str(place), "full")) as database:
        assert database.names.problem() is None
        file = Path(f"{place}{ending}")
        undo = harm(file)
        first = place if harm is directory_moved else file
        assert database.names.problem() == f"{first} {SAID[harm]}"
        if undo is not None:
            undo()
            assert database.names.problem() is None


def test_a_symbolic_link_that_leads_elsewhere_is_noticed(place: Path) -> None:
    link = place.parent.parent / "link.db"
    link.symlink_to(place)
    with closing(open_database(str(link), "full")) as database:
        link.unlink()
        link.symlink_to(place.with_name("other.db"))
        assert database.names.problem() == f"{link} was removed or moved"
        place.with_name("other.db").touch()
        assert database.names.problem() == f"{link} was replaced by another file"


def test_a_database_with_a_second_name_is_not_opened(place: Path) -> None:
    open_database(str(place), "full").close()
    place.with_name("second.db").hardlink_to(place)
    with pytest.raises(StorageOpenError, match=r"forq\.db has a second name \(a hard link\)"):
        open_database(str(place), "full")


def test_a_read_never_opens_another_file_by_the_name(place: Path) -> None:
    with closing(SqliteEngine(str(place), EngineSettings())) as engine:
        replaced(place)
        with pytest.raises(StorageLost, match="was replaced by another file"):
            engine.open_reader()


def test_closing_leaves_no_log_beside_the_file_that_has_the_name_now(place: Path) -> None:
    """The next start would write that log over a file to which it does not belong."""
    open_database(str(place), "full").close()
    with closing(open_database(str(place), "full")) as database:
        replaced(place)
        database.connection.execute("CREATE TABLE late (number)")
        assert os.path.getsize(f"{place}-wal") > 0
    assert not has_log(str(place))
    with closing(open_database(str(place), "full")) as database:
        assert not database.connection.table_exists("main", "late")


def test_closing_leaves_alone_the_log_of_whoever_has_the_names_now(place: Path) -> None:
    with closing(open_database(str(place), "full")) as first:
        first.connection.execute("CREATE TABLE of_the_first (number)")
        aside = place.parent.rename(f"{place.parent}.aside")
        with closing(open_database(str(place), "full")) as second:
            second.connection.execute("CREATE TABLE of_the_second (number)")
            log = os.stat(f"{place}-wal")
            first.close()
            assert os.stat(f"{place}-wal") == log
            assert second.names.problem() is None
    with closing(open_database(str(aside / "forq.db"), "full")) as database:
        assert database.connection.execute("SELECT count(*) FROM of_the_first").get == 0


def test_a_log_that_was_removed_is_in_the_file_after_an_orderly_end(place: Path) -> None:
    with closing(open_database(str(place), "full")) as database:
        database.connection.execute("CREATE TABLE late (number)")
        removed(Path(f"{place}-wal"))
    with closing(open_database(str(place), "full")) as database:
        assert database.connection.execute("SELECT count(*) FROM late").get == 0
