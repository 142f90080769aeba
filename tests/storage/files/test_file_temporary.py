"""--memory (S10): a database that keeps nothing, and what becomes of those of processes that were killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.engine import NO_DURABILITY, EngineSettings
from forq_trio.storage.open import MEMORY_URL, open_engine
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files import temporary
from forq_trio.storage.sqlite.files.temporary import PREFIX, temporary_database
from support.processes import WAIT_SECONDS_MAX

HOLD_ONE = """
import sys
from pathlib import Path
from forq_trio.storage.sqlite.files.temporary import temporary_database
with temporary_database(Path(sys.argv[1])) as path:
    Path(path).write_text("of a process that lives")
    print(path, flush=True)
    sys.stdin.read()
"""


def test_a_fresh_place_that_is_gone_afterwards(tmp_path: Path):
    with temporary_database(tmp_path) as path:
        assert not Path(path).exists()
        assert Path(path).parent.stat().st_mode & 0o777 == 0o700
        engine = open_engine(f"sqlite:///{path}", EngineSettings(), NO_DURABILITY)
        assert engine.durability == "none"
        assert Path(path).exists()
        with temporary_database(tmp_path) as other:
            assert other != path
        engine.close()
    assert list(tmp_path.iterdir()) == []


def test_gone_also_after_an_error(tmp_path: Path):
    def fail() -> None:
        with temporary_database(tmp_path) as path:
            Path(path).write_text("x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_the_dead_are_removed_and_nothing_else(tmp_path: Path):
    command = [sys.executable, "-c", HOLD_ONE, str(tmp_path)]
    (tmp_path / f"{PREFIX}file").write_text("not a directory")
    (tmp_path / "somebody").mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "somebody")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        with temporary_database(tmp_path):
            assert theirs.read_text() == "of a process that lives"
        process.send_signal(signal.SIGKILL)
        process.wait(WAIT_SECONDS_MAX)
        assert theirs.exists()
    with temporary_database(tmp_path):
        assert not theirs.parent.exists()
    assert {path.name for path in tmp_path.iterdir()} == {f"{PREFIX}file", f"{PREFIX}link", "somebody"}


def test_a_place_that_cannot_be_used(tmp_path: Path):
    with pytest.raises(StorageOpenError, match="cannot hold a temporary directory"):
        temporary_database(tmp_path / "none").__enter__()


def test_in_memory_if_there_is_such_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(temporary, "MEMORY", tmp_path)
    with temporary_database() as path:
        assert Path(path).parent.parent == tmp_path
    monkeypatch.setattr(temporary, "MEMORY", tmp_path / "none")
    monkeypatch.setattr(temporary.tempfile, "tempdir", os.fspath(tmp_path))
    with temporary_database() as path:
        assert Path(path).parent.parent == tmp_path


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_memory_means_a_temporary_file_of_the_fast_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str
) -> None:
    """The same for `forq serve --memory` and `open_broker("memory:")`."""
    monkeypatch.setattr(temporary, "MEMORY", tmp_path)
    engine = open_engine(MEMORY_URL, EngineSettings(), durability)
    assert isinstance(engine, SqliteEngine)
    assert engine.durability == NO_DURABILITY
    assert [path.name for path in tmp_path.glob(f"{PREFIX}*/forq.db")] == ["forq.db"]
    engine.close()
    assert list(tmp_path.iterdir()) == []
