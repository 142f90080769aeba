"""Archives of the layout before Delta tables: they become tables where they are, and no file is moved.

    ARCHIVE/events/date=2026-11-23/queue_name=orders/batch=17/part-….parquet       batch=-18 was compacted
    ARCHIVE/_checkpoints/events            where a streaming query was, and forq.json, whose it was

Spark's checkpoint says which of their files count: those of batches that it had committed. Others may be part of a
batch that was not finished.
"""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
from deltalake.transaction import AddAction
from pyspark.sql import SparkSession

from pyspark_forq.pipelines.archive_table import ARCHIVED, DAY, ArchiveError, ArchiveTable

_FILE = re.compile(r"date=([0-9-]{10})/queue_name=[^/]+/batch=(-?[0-9]{1,18})/[^._/][^/]*\.parquet")


def open_table(spark: SparkSession, archive: str | Path, table: str) -> ArchiveTable:
    """A table of an archive, of whatever layout. Raises ArchiveError for an old one without its checkpoint."""
    found = ArchiveTable(spark, archive, table)
    if "://" not in found.root and not (found.exists and found.number(ARCHIVED)):
        _adopt(found)
    return found


def _adopt(table: ArchiveTable) -> None:
    """Commit the files that count to a table that has none; does nothing where there are none."""
    root, checkpoint = Path(table.root), Path(table.archive) / "_checkpoints" / table.table
    found = [
        (path, match)
        for path in sorted(root.glob("date=*/*/*/*.parquet"))
        if (match := _FILE.fullmatch(str(path.relative_to(root))))
    ]
    if not found:
        return
    numbers = [int(path.name) for path in (checkpoint / "commits").glob("*") if path.name.isdigit()]
    if not numbers:
        raise ArchiveError(f"bring back the checkpoint {checkpoint}: it says which files of {root} count")
    last = max(numbers)
    until = json.loads((checkpoint / "offsets" / str(last)).read_text().splitlines()[-1])["until"]
    files = [(path, match[1]) for path, match in found if _newest(int(match[2])) <= last]
    table.belong_to(
        pq.read_schema(files[-1][0]).remove_metadata(), json.loads((checkpoint / "forq.json").read_text())
    )
    table.commit(ARCHIVED, None, until, [_added(path, path.relative_to(root), day) for path, day in files])


def _newest(batch: int) -> int:
    """The newest batch whose rows are in a directory with this number, which is negative for compacted ones."""
    return batch if batch >= 0 else -batch - 1


def _added(path: Path, below: Path, day: str) -> AddAction:
    state, rows = path.stat(), pq.read_metadata(path).num_rows
    stats = json.dumps({"numRecords": rows})
    return AddAction(str(below), state.st_size, {DAY: day}, int(state.st_mtime * 1000), True, stats)
