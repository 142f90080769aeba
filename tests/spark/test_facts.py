"""What we rely on in how Spark calls a data source, on the real Spark, so that a version that changes it is seen.

`probe` writes down how it is called.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyspark
import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from spark.probe import LIMIT, Probe

ROWS = 2 * LIMIT

# Spark's processes cannot import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def probed(spark):
    """Spark with the data source."""
    spark.dataSource.register(Probe)
    return spark


def calls_of(log: Path) -> list[SimpleNamespace]:
    return [SimpleNamespace(**json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()]


def named(calls: list[SimpleNamespace], *names: str) -> list[SimpleNamespace]:
    return [call for call in calls if call.call in names]


def run(spark, folder: Path, log: str, **options: object) -> list[SimpleNamespace]:
    """The calls of a query from probe to probe, that ends when there is nothing left."""
    path = folder / log
    source = spark.readStream.format("probe").options(log=str(path), rows=ROWS, **options).load()
    query = (
        source.writeStream.format("probe")
        .options(log=str(path), checkpointLocation=str(folder / "checkpoint"))
        .queryName(f"probe {folder.name}")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return calls_of(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("probe")


@pytest.fixture(scope="module")
def first(probed, folder) -> list[SimpleNamespace]:
    """The calls of a new query."""
    return run(probed, folder, "first")


@pytest.fixture(scope="module")
def second(probed, folder, first) -> list[SimpleNamespace]:
    """Those of the same query again, after a crash in its last batch: it is not in the log of commits."""
    for name in ("1", ".1.crc"):
        (folder / "checkpoint" / "commits" / name).unlink()
    return run(probed, folder, "second")


def test_the_initial_offset_is_asked_for_twice_for_the_first_batch(first) -> None:
    assert [call.call for call in named(first, "initialOffset", "partitions")][:3] == [
        "initialOffset",
        "initialOffset",
        "partitions",
    ]


def test_the_order_of_a_batch(first) -> None:
    of_batches = [
        call.call
        for call in named(first, "latestOffset", "partitions", "read", "write", "sinkCommit", "sourceCommit")
    ]
    batch = ["partitions", "read", "write", "sinkCommit"]
    assert of_batches == ["latestOffset", *batch, "latestOffset", "sourceCommit", *batch, "latestOffset"]


def test_the_start_of_the_next_batch_is_in_the_log_of_commits(first) -> None:
    """So latestOffset may acknowledge what is up to its start; the last batch is never committed otherwise."""
    assert [call.start for call in named(first, "latestOffset")] == [{"at": 0}, {"at": LIMIT}, {"at": ROWS}]
    assert [call.end for call in named(first, "sourceCommit")] == [{"at": LIMIT}]


def test_available_now_keeps_the_limits_and_ends_when_the_offset_stands_still(first) -> None:
    assert len(named(first, "prepare")) == 1
    assert [call.limit for call in named(first, "latestOffset")] == ["ReadMaxRows"] * 3


def test_a_source_that_ends_is_not_stopped(first) -> None:
    assert named(first, "stop") == []


def test_a_batch_that_was_not_committed_is_planned_again_with_the_same_end(second) -> None:
    (planned,) = named(second, "partitions")
    assert (planned.start, planned.end) == ({"at": LIMIT}, {"at": ROWS})
    (committed,) = named(second, "sinkCommit")
    assert committed.batch == 1
    assert named(second, "prepare", "latestOffset", "partitions")[0].call == "prepare"
    assert [call.start for call in named(second, "latestOffset")] == [{"at": ROWS}]


def test_a_query_has_one_id_as_long_as_its_checkpoint_and_its_tasks_know_it(first, second) -> None:
    written = named(first + second, "write")
    assert len({call.query for call in written}) == 1
    assert written[0].query is not None
    assert [call.batch for call in written] == ["0", "1", "1"]
    assert all(not call.has_task for call in named(first, "sinkCommit"))  # where nothing has the id


def test_sources_see_their_own_options_only_and_sinks_where_the_checkpoint_is(first, folder) -> None:
    assert {frozenset(call.options) for call in named(first, "streamReader")} == {frozenset({"log", "rows"})}
    (options,) = {frozenset(call.options) for call in named(first, "streamWriter")}
    assert options == {"log", "checkpointlocation", "queryname"}


def test_readers_and_writers_are_made_in_several_processes(first) -> None:
    assert len({call.pid for call in named(first, "streamReader")}) > 1
    assert len({call.pid for call in named(first, "initialOffset", "latestOffset", "partitions")}) == 1
    written, committed = named(first, "write"), named(first, "sinkCommit")
    assert not {call.writer for call in written} & {call.writer for call in committed}


@pytest.mark.tier2
def test_a_query_that_ends_inside_latest_offset_asks_again_with_the_same_start(probed, tmp_path) -> None:
    broken = tmp_path / "log.broken"
    broken.touch()
    with pytest.raises(PySparkException, match="broken in latestOffset"):
        run(probed, tmp_path, "log")
    broken.unlink()
    calls = run(probed, tmp_path, "log")
    assert [call.start for call in named(calls, "latestOffset")][:2] == [{"at": 0}, {"at": 0}]


@pytest.mark.tier2
def test_without_available_now_a_source_has_one_batch_of_everything(probed, tmp_path) -> None:
    calls = run(probed, tmp_path, "log", once="true")
    assert named(calls, "latestOffset")[0].limit == "ReadAllAvailable"
    assert [call.end for call in named(calls, "partitions")] == [{"at": ROWS}]


@pytest.mark.tier2
def test_an_error_of_stream_reader_is_hidden_by_another(probed, tmp_path) -> None:
    with pytest.raises(PySparkException) as raised:
        run(probed, tmp_path, "log", refuse="true")
    assert "UnboundLocalError" in str(raised.value)


@pytest.mark.tier2
def test_partitions_are_read_again_by_each_action_and_by_a_union_with_itself(probed, tmp_path) -> None:
    log = tmp_path / "log"
    source = probed.readStream.format("probe").options(log=str(log), rows=LIMIT).load()

    def count_twice(rows, batch: int) -> None:
        rows.count()
        rows.count()

    query = (
        source.union(source)
        .writeStream.foreachBatch(count_twice)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [call.first for call in named(calls_of(log), "read")] == [0, 0, 0, 0]


def test_a_batch_has_one_writer_and_copies_of_it(probed, tmp_path) -> None:
    """So an id that it is made with is one of the whole write; schema() is not asked."""
    log = tmp_path / "log"
    probed.range(10, numPartitions=2).write.format("probe").option("log", str(log)).mode("append").save()
    calls = calls_of(log)
    written, (committed,) = named(calls, "write"), named(calls, "sinkCommit")
    assert len(written) == 2
    assert {call.writer for call in written} == {committed.writer}
    assert sorted(committed.tasks) == sorted(call.writer for call in written)
    assert named(calls, "schema") == []


def test_a_batch_without_partitions_is_given_one(probed, tmp_path) -> None:
    log = tmp_path / "log"
    probed.read.format("probe").options(log=str(log), empty="true").load().collect()
    (read,) = named(calls_of(log), "read")
    assert read.value is None


def test_arrow_batches_have_exactly_the_schema(probed, tmp_path) -> None:
    wrong = probed.read.format("probe").options(log=str(tmp_path / "log"), wrong="true").load()
    with pytest.raises(PySparkException, match="DATA_SOURCE_RETURN_SCHEMA_MISMATCH"):
        wrong.collect()


def test_push_filters_fails_unless_spark_is_told_to(probed, tmp_path) -> None:
    filtering = probed.read.format("probe").options(log=str(tmp_path / "log"), filters="true").load()
    with pytest.raises(PySparkException, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
        filtering.filter(f.col("number") > 1).collect()


def test_a_module_with_our_prefix_is_found_without_being_registered(spark) -> None:
    other = spark.newSession()
    with pytest.raises(PySparkException, match="did you mean 'queue'"):
        other.read.format("forq").option("que", "q").load()


def test_workers_run_the_python_of_this_process(spark) -> None:
    workers = spark.range(1).mapInArrow(its_python, "python string").collect()
    assert [row.python for row in workers] == [sys.executable]


@pytest.mark.tier2
@pytest.mark.process
def test_without_being_told_workers_run_the_python3_of_the_path(spark, tmp_path) -> None:
    """And what Spark says when it is another one does not name it."""
    ran = tmp_path / "ran"
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text(f"#!/bin/sh\necho $0 >> {ran}\nexit 1\n", encoding="utf-8")
    other.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_OUR_SESSION],
        env={
            **inherited,
            "PATH": f"{other.parent}{os.pathsep}{inherited['PATH']}",
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert ran.read_text(encoding="utf-8").splitlines()[0] == str(other)
    assert str(other) not in done.stderr


WITHOUT_OUR_SESSION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.range(1).mapInArrow(lambda batches: batches, "id long").collect()
"""


def its_python(batches):
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.executable]})
