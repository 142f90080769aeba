"""A data source that writes down how Spark calls it: a line of JSON for each call, in the file of option `log`.

It has as many rows as option `rows` says; a file named `<log>.broken` makes latestOffset fail.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow

LIMIT = 3


def note(log: str, call: str, **facts: object) -> None:
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"call": call, "pid": os.getpid(), **facts}) + "\n")


@dataclass
class Numbers(InputPartition):
    first: int
    last: int


@dataclass
class Done(WriterCommitMessage):
    writer: str
    rows: int


class Probe(DataSource):
    @classmethod
    def name(cls) -> str:
        return "probe"

    def note(self, call: str, **facts: object) -> None:
        note(self.options["log"], call, options=dict(self.options.items()), **facts)

    def schema(self) -> str:
        self.note("schema")
        return "number long"

    def reader(self, schema):
        return FilteringReader(self.options) if "filters" in self.options else BatchReader(self.options)

    def streamReader(self, schema):
        self.note("streamReader")
        if "refuse" in self.options:
            raise ValueError("refused in streamReader")
        return Once(self.options) if "once" in self.options else Stream(self.options)

    def writer(self, schema, overwrite):
        self.note("writer", overwrite=overwrite)
        return BatchWriter(self.options["log"])

    def streamWriter(self, schema, overwrite):
        self.note("streamWriter", overwrite=overwrite)
        return StreamWriter(self.options["log"])


class BatchReader(DataSourceReader):
    def __init__(self, options) -> None:
        self.options = options

    def partitions(self) -> list[InputPartition]:
        return [] if "empty" in self.options else [InputPartition(1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        note(self.options["log"], "read", value=getattr(partition, "value", "none"))
        kind = pa.int32() if "wrong" in self.options else pa.int64()
        yield pa.RecordBatch.from_arrays([pa.array([1], kind)], names=["number"])


class FilteringReader(BatchReader):
    def pushFilters(self, filters):
        return filters


class Once(DataSourceStreamReader):
    """Without SupportsTriggerAvailableNow."""

    def __init__(self, options) -> None:
        self.log = options["log"]
        self.rows = int(options["rows"])

    def initialOffset(self) -> dict:
        note(self.log, "initialOffset")
        return {"at": 0}

    def getDefaultReadLimit(self):
        return ReadMaxRows(LIMIT)

    def latestOffset(self, start: dict, limit) -> dict:
        note(self.log, "latestOffset", start=start, limit=type(limit).__name__)
        if Path(f"{self.log}.broken").exists():
            raise ValueError("broken in latestOffset")
        return {"at": min(self.rows, start["at"] + getattr(limit, "max_rows", self.rows))}

    def partitions(self, start: dict, end: dict) -> list[InputPartition]:
        note(self.log, "partitions", start=start, end=end)
        return [Numbers(start["at"], end["at"])]

    def read(self, partition: Numbers) -> Iterator[pa.RecordBatch]:
        note(self.log, "read", first=partition.first)
        yield pa.RecordBatch.from_arrays(
            [pa.array(range(partition.first, partition.last), pa.int64())], names=["number"]
        )

    def commit(self, end: dict) -> None:
        note(self.log, "sourceCommit", end=end)

    def stop(self) -> None:
        note(self.log, "stop")


class Stream(Once, SupportsTriggerAvailableNow):
    def prepareForTriggerAvailableNow(self) -> None:
        note(self.log, "prepare")


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, log: str) -> None:
        self.log = log
        self.id = str(uuid4())

    def write(self, iterator) -> Done:
        rows = sum(batch.num_rows for batch in iterator)
        note(self.log, "write", writer=self.id, rows=rows)
        return Done(self.id, rows)

    def commit(self, messages) -> None:
        note(self.log, "sinkCommit", writer=self.id, tasks=[message.writer for message in messages])


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, log: str) -> None:
        self.log = log
        self.id = str(uuid4())

    def write(self, iterator) -> Done:
        rows = sum(batch.num_rows for batch in iterator)
        context = TaskContext.get()
        note(
            self.log,
            "write",
            writer=self.id,
            query=context.getLocalProperty("sql.streaming.queryId"),
            batch=context.getLocalProperty("streaming.sql.batchId"),
        )
        return Done(self.id, rows)

    def commit(self, messages, batchId) -> None:
        note(self.log, "sinkCommit", writer=self.id, batch=batchId, has_task=TaskContext.get() is not None)


# Spark's processes cannot import the tests.
cloudpickle.register_pickle_by_value(__import__(__name__, fromlist=["probe"]))
