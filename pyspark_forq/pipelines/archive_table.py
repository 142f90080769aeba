"""A table of an archive: Parquet files, and the log that says which of them count, in the format of Delta Lake.

    ARCHIVE/events/_delta_log/00000000000000000017.json             the log: a file for each commit
    ARCHIVE/events/batch-<id>/date=2026-11-23/part-….parquet        what a commit added
    ARCHIVE/history/…

Rules
1. Files count from the commit that names them to the one that removes them. A commit is one file, created only if there
   is none of its number, which a local file system and the object stores do in one step. So a reader sees the files of
   one commit, whatever comes and goes meanwhile, and a killed writer leaves files that nobody reads.
2. A batch is committed together with its last id (a `txn` of the log). The next run goes on behind it: where an archive
   is, only its log knows, so a copy of it is whole, and a repeated batch is refused, not written twice.
3. A compaction commits the files that it adds and removes together, with a count of compactions. Of two writers of one
   kind that begin at the same commit, one finds its number used: it fails, and has changed nothing. A batch and a
   compaction do not disturb each other.
4. Files that do not count are removed after KEEP_HOURS, when nobody reads or writes them any more (`vacuum`).
5. The table belongs to one server and queue, which its properties name.
"""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction
from msgspec import Struct
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from forq_trio.model.errors import ForqError, InvalidRequest
from pyspark_forq.pipelines.owners import named
from pyspark_forq.pipelines.stores import storage_options, whole

TABLES = ("events", "history")
DAY = "date"
KEEP_HOURS = 168
ARCHIVED = "forq archive"
COMPACTED = "forq compact"
_OWNER = "forq."
_TRIES = 20


class ArchiveError(ForqError):
    """An archive is damaged or missing, or another run is writing to it."""


class LoggedFile(Struct, frozen=True):
    """A file that counts."""

    path: str  # from the table's directory on
    day: date
    bytes: int
    rows: int  # how many it has


class ArchiveTable:
    """One table of an archive, as its log is when this is made, and after each commit of its own."""

    def __init__(self, spark: SparkSession, archive: str | Path, table: str) -> None:
        self.spark = spark
        self.archive = whole(archive)
        self.table = table
        self.root = f"{self.archive}/{table}"
        self._options = storage_options(spark, self.root)
        self._log = self._opened()

    @property
    def exists(self) -> bool:
        """Whether something was archived."""
        return self._log is not None

    @property
    def log(self) -> DeltaTable:
        """The Delta table. Raises ArchiveError where nothing was archived."""
        if self._log is None:
            raise ArchiveError(f"there are no {self.table} in {self.archive}")
        return self._log

    def belong_to(self, schema: pa.Schema, about: Mapping[str, str | None]) -> None:
        """Make the table if there is none, and columns that it lacks. about: the server and the queue it belongs to.

        Raises InvalidRequest if it belongs to another one.
        """
        owner = {f"{_OWNER}{name}": value for name, value in about.items()}
        if self._log is None:
            try:
                self._log = DeltaTable.create(
                    self.root,
                    schema.append(pa.field(DAY, pa.date32())),
                    partition_by=[DAY],
                    configuration=owner,
                    storage_options=self._options,
                    raise_if_key_not_exists=False,
                )
            except (DeltaError, CommitFailedError):
                self._log = self._opened()
                if self._log is None:
                    raise
        self._check_owner(about)
        known = {field.name for field in self.log.schema().fields}
        new = [field for field in schema if field.name not in known]
        if new:
            self.log.alter.add_columns(Schema.from_arrow(pa.schema(new)).fields)
            self.log.update_incremental()

    def schema(self) -> StructType:
        """Its columns as Spark has them, without the day."""
        found = StructType.fromJson(json.loads(self.log.schema().to_json()))
        return StructType([field for field in found if field.name != DAY])

    def files(
        self, *, queue: str | None = None, since: date | None = None, until: date | None = None
    ) -> list[LoggedFile]:
        """The files that count: all, or those that may have rows of a queue, and of the days from one to another."""
        found: list[dict[str, Any]] = pa.table(self.log.get_add_actions(flatten=True)).to_pylist()
        return [
            LoggedFile(row["path"], row[f"partition.{DAY}"], row["size_bytes"], row["num_records"])
            for row in found
            if (since or date.min) <= row[f"partition.{DAY}"] <= (until or date.max)
            and (queue is None or _may_have(queue, row.get("min.queue"), row.get("max.queue")))
        ]

    def number(self, app: str) -> int | None:
        """The number that the last commit of `app` (ARCHIVED, COMPACTED) has; None: there was none."""
        found: int | None = self.log.transaction_version(app)
        return found

    def commit(
        self,
        app: str,
        previous: int | None,
        number: int,
        added: Sequence[AddAction],
        removed: Sequence[LoggedFile] = (),
    ) -> None:
        """Add and remove files in one step, as the commit `number` of `app`, whose last one was `previous`.

        Raises ArchiveError if `app` committed since, or a file to remove does not count any more. That is looked at
        here, because the library lets two writers that only move rows pass each other.
        """
        now = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [
            *(
                RemoveAction(each.path, False, now, each.bytes, {DAY: each.day.isoformat()})
                for each in removed
            ),
            *(replace(each, data_change=not removed) for each in added),
        ]
        # Without tries of the library's own: it commits behind what was read, or not at all.
        properties = CommitProperties(app_transactions=[Transaction(app, number)], max_commit_retries=0)
        for _ in range(_TRIES):
            if self.number(app) != previous or not set(removed) <= set(self.files()):
                break
            try:
                self.log.create_write_transaction(
                    actions, "append", self.log.schema(), partition_by=[DAY], commit_properties=properties
                )
            except CommitFailedError:
                self.log.update_incremental()
                continue
            self.log.update_incremental()
            return
        raise ArchiveError(f"another run is at work in {self.root} and came first: nothing was changed")

    def vacuum(self, keep_hours: int) -> None:
        """Remove files that have not counted for `keep_hours`."""
        self.log.vacuum(keep_hours, dry_run=False, enforce_retention_duration=False, full=True)

    def _opened(self) -> DeltaTable | None:
        try:
            return DeltaTable(self.root, storage_options=self._options)
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as problem:
            words = " ".join(re.sub(r"\x1b\[\d+m|↳", "", str(problem)).split())
            raise ArchiveError(f"{self.root} cannot be read: {words}") from None

    def _check_owner(self, about: Mapping[str, str | None]) -> None:
        known = self.log.metadata().configuration
        differing = {
            name: known.get(f"{_OWNER}{name}")
            for name, value in about.items()
            if known.get(f"{_OWNER}{name}") != value
        }
        if differing:
            words = ", ".join(
                f"{named(name, value)}, not {named(name, about[name])}" for name, value in differing.items()
            )
            raise InvalidRequest(
                f"the archive {self.root} is of {words}: use another one. If that is the same under another name,"
                f" change its table properties {', '.join(_OWNER + name for name in differing)}"
            )


def _may_have(queue: str, first: str | None, last: str | None) -> bool:
    """Whether a file may have rows of a queue, by the first and last queue in it; None: not known."""
    return first is None or last is None or first <= queue <= last
