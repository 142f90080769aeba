"""Archives of made-up events, without a server."""

from pathlib import Path

from deltalake import DeltaTable

from pyspark_forq.pipelines.archive_files import write_files
from pyspark_forq.pipelines.archive_table import ARCHIVED, ArchiveTable
from pyspark_forq.rows import arrow_schema
from spark.event_frames import SCHEMA

_NAMES: dict[str, dict[str, str]] = {"events": {}, "history": {"id": "history_id", "at": "finished_at"}}
OWNER = {"url": "http://forq", "queue": None}


def add_batch(spark, archive: str | Path, *events: tuple, table_name: str = "events") -> None:
    """What a batch leaves; the last event is its end."""
    frame = spark.createDataFrame(events, SCHEMA).withColumnsRenamed(_NAMES[table_name]).coalesce(1)
    table = ArchiveTable(spark, archive, table_name)
    table.belong_to(arrow_schema(frame.schema), OWNER)
    table.commit(ARCHIVED, table.number(ARCHIVED), events[-1][0], write_files(frame, table, "batch"))


def ids(archive: Path) -> list[int]:
    """The ids in an archive, in order, as a reader of Delta tables has them that knows nothing of us."""
    return sorted(DeltaTable(archive / "events").to_pyarrow_table(columns=["id"])["id"].to_pylist())


def parquet(archive: Path) -> set[str]:
    """The files on disk, whether they count or not."""
    return {path.name for path in (archive / "events").rglob("*.parquet")}
