"""What waiting tasks are told after a commit that took over what other processes did before it."""

from contextlib import closing
from pathlib import Path

from forq_trio.announcements import Announcements
from forq_trio.storage.engine import BatchResult, Elsewhere, EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine


def test_the_end_that_came_last_is_told(tmp_path: Path) -> None:
    """Another process made a dead letter of the message, which this one then cancelled."""
    told = Announcements()
    elsewhere = [Elsewhere(frozenset(), frozenset(), False, {"m": "dead"})]
    result = BatchResult([], [], None, [], elsewhere=elsewhere, ended={"m": "cancelled"})
    with closing(SqliteEngine(str(tmp_path / "forq.db"), EngineSettings())) as engine, told.ended.on("m"):
        told.announce(result, engine.snapshot())
        assert told.ended.ending("m") == "cancelled"
