"""A file of the fourteenth schema: its tasks over dead letters go on."""

from contextlib import closing

import apsw
import pytest

from forq_trio.model.errors import StorageOpenError
from forq_trio.model.searches import AppliedFilter
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files import migrations
from support.old_files import make_version_1
from support.redrives import redrive_task

WHOLE = (
    '{"id":"a","queue":"q-dlq","action":"delete","wanted":{"reason":"r","since_ms":1,"until_ms":2,'
    '"attributes":{"k":"v"},"text":"ö","error":"","error_like":"e 1","status":null,"above_sequence":3},"target":null,'
    '"rate_per_second":5,"dry_run":true,"started_by":"ann","started_at":4,"total":9,"state":"failed",'
    '"before_sequence":7,"searched":6,"matched":5,"skipped":1,"moved":3,"paused_at":null,"finished_at":8,"error":"why"}'
)
OLDEST = (
    '{"id":"b","queue":"q-dlq","wanted":{"reason":null,"since_ms":null,"until_ms":null,"attributes":{},"text":null,'
    '"error":null},"target":"t","rate_per_second":null,"dry_run":false,"started_at":4,"total":9,"state":"paused",'
    '"before_sequence":null,"searched":0,"matched":0,"skipped":0,"moved":0,"paused_at":5,"finished_at":null,"error":null}'
)


@pytest.fixture
def version_14(path) -> str:
    make_version_1(path)
    with closing(apsw.Connection(path)) as connection, migrations.immediate(connection):
        migrations.apply(connection, migrations.KNOWN[1:14])
        connection.executemany("INSERT INTO redrives (id, task) VALUES (?, ?)", [("a", WHOLE), ("b", OLDEST)])
    return path


def test_tasks_are_what_they_were(version_14) -> None:
    with closing(SqliteEngine(version_14, EngineSettings(), "normal")) as engine:
        assert list(engine.snapshot().redrives.values()) == [
            redrive_task(
                "a",
                action="delete",
                filter=AppliedFilter(
                    reason="r",
                    since=1,
                    until=2,
                    attributes={"k": "v"},
                    text="ö",
                    error="",
                    above_sequence=3,
                    error_like="e 1",
                ),
                rate_per_second=5,
                dry_run=True,
                started_by="ann",
                started_at=4,
                total=9,
                state="failed",
                before_sequence=7,
                searched=6,
                matched=5,
                skipped=1,
                moved=3,
                finished_at=8,
                error="why",
            ),
            redrive_task("b", target="t", started_at=4, total=9, state="paused", paused_at=5),
        ]


def test_a_damaged_one_is_named(version_14) -> None:
    with closing(apsw.Connection(version_14)) as connection:
        connection.execute("UPDATE redrives SET task = 'x' || task WHERE id = 'b'")
    with pytest.raises(StorageOpenError, match="the redrive b cannot be read"):
        SqliteEngine(version_14, EngineSettings(), "normal")
