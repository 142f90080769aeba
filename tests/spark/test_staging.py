"""What killed attempts of write_once leave beside a table goes after a day, and nothing else does."""

import os
import time
from pathlib import Path

import pytest
from pyspark.sql import functions as f

from pyspark_forq import staging, write_once
from pyspark_forq.staging import STAGING_SECONDS

LEASE = "lake-7-1767225600000"


def left(table: Path, name: str, *paths: str, age: float) -> Path:
    """A staging directory as a killed attempt leaves it; all in it is as old."""
    directory = table / f".spark-staging-{name}"
    directory.mkdir(parents=True)
    for path in paths:
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).touch()
    then = time.time() - age
    for each in (*directory.rglob("*"), directory):
        os.utime(each, (then, then))
    return directory


def test_old_staging_of_leases_alone_is_removed(spark, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(staging, "_looked_at", {})
    old, table = STAGING_SECONDS + 60, tmp_path / "table"
    dead = [
        left(table, "1", f"lease={LEASE}/part-0.parquet", age=old),
        left(table, "2", "lease=lake-8-1/part-0.parquet", "lease=o.t-9-0/part-1.parquet", age=old),
    ]
    fresh = left(table, "3", f"lease={LEASE}/part-0.parquet", age=STAGING_SECONDS / 2)
    at_work = left(table, "4", f"lease={LEASE}/part-0.parquet", age=old)
    (at_work / f"lease={LEASE}" / "part-1.parquet").touch()
    others = [
        left(table, "5", "date=2026-01-01/part-0.parquet", age=old),
        left(table, "6", f"lease={LEASE}/part-0.parquet", "date=2026-01-01/part-0.parquet", age=old),
        left(table, "7", "part-0.parquet", age=old),
        left(table, "8", age=old),
    ]
    rows = spark.range(3).withColumn("lease", f.lit(LEASE))
    write_once(rows, str(table))
    assert [each for each in dead if each.exists()] == []
    assert [each for each in (fresh, at_work, *others) if not each.exists()] == []
    assert spark.read.parquet(str(table)).count() == 3
    later = left(table, "9", f"lease={LEASE}/part-0.parquet", age=old)
    write_once(rows, str(table))
    assert later.exists()  # it looks once an hour


@pytest.mark.parametrize(
    "name", ["lease=", "lease=lake", "lease=lake-7", "lease=lake-7-x", "lease=a b-7-1", "x"]
)
def test_only_names_of_leases_are_taken_for_leases(name) -> None:
    assert staging._OF_LEASE.fullmatch(name) is None
    assert staging._OF_LEASE.fullmatch(f"lease={LEASE}") is not None
