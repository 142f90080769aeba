"""Removes what killed attempts of write_once left: Spark's staging directories.

Spark writes the files of a batch into `.spark-staging-…` beside the table, and moves them when all are written. A kill
in between leaves the directory for ever, because the repeated batch is written into another one.

A directory belongs to write_once if it has only files of leases. It is abandoned if nothing in it has changed for
STAGING_SECONDS. A lease has at most a million messages and 1 GiB, so no task writes for that long. If one did, its
batch would fail and be repeated; no message would be lost.
"""

import re
import time
from typing import Any

from pyspark.sql import SparkSession

from pyspark_forq.columns import LEASE
from pyspark_forq.pipelines.stores import literal

STAGING_SECONDS = 86_400
LOOK_SECONDS = 3_600
"""How often a long-running query looks for abandoned directories; it also does so at its first batch."""

_OF_LEASE = re.compile(rf"{LEASE}=[A-Za-z0-9._-]{{1,64}}-\d+-\d+")
_looked_at: dict[str, float] = {}


def remove_staging(spark: SparkSession, path: str) -> None:
    """Remove old staging directories of write_once below a table's path, unless that was done in the last hour.

    Behind Spark Connect nothing is removed: there the file system is the server's. Raises what Spark raises.
    """
    now = time.monotonic()
    if now - _looked_at.get(path, -LOOK_SECONDS) < LOOK_SECONDS or not hasattr(spark, "_jvm"):
        return
    _looked_at[path] = now
    jvm: Any = spark._jvm
    table = jvm.org.apache.hadoop.fs.Path(path)
    files = table.getFileSystem(spark._jsc.hadoopConfiguration())
    before_ms = (time.time() - STAGING_SECONDS) * 1_000
    for found in files.globStatus(jvm.org.apache.hadoop.fs.Path(f"{literal(path)}/.spark-staging-*")) or ():
        if _is_left(files, found, before_ms):
            files.delete(found.getPath(), True)


def _is_left(files: Any, staging: Any, before_ms: float) -> bool:
    """Whether a directory has only files of leases, and none was changed since `before_ms`."""
    inside = list(files.listStatus(staging.getPath()))
    if not inside or not all(_OF_LEASE.fullmatch(each.getPath().getName()) for each in inside):
        return False
    statuses = [staging, *inside]
    for each in inside:
        statuses += files.listStatus(each.getPath())
    return all(each.getModificationTime() < before_ms for each in statuses)
