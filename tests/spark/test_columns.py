"""Rows and messages, both ways: which columns a data frame may have, and which ones a read has."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

import pyspark_forq
from forq_trio.model.limits import CONTENT_BYTES_MAX, STAGE_PAGE_MESSAGES_MAX
from forq_trio.model.messages.export import ExportedMessage
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.publishing.types import Stage
from pyspark_forq.errors import ForqDataSourceError, ForqSchemaError, reason_of
from pyspark_forq.messages import OPEN_BYTES_MAX, messages_of, pages_of
from pyspark_forq.options import parsed
from pyspark_forq.ranges import Range, cut, tasks_for
from pyspark_forq.rows import arrow_schema, batch_of
from pyspark_forq.schemas import check_columns, schema_of
from pyspark_forq.writing import TaskStages, publish

TEXT_TYPE, INT, LONG, TIME = StringType(), IntegerType(), LongType(), TimestampType()
TEXT = {"content": TEXT_TYPE}
ALL = TEXT | {
    "priority": INT,
    "delay_ms": LONG,
    "ttl_ms": INT,
    "process_after": TIME,
    "attributes": MapType(TEXT_TYPE, TEXT_TYPE),
    "group": TEXT_TYPE,
    "deduplication_id": TEXT_TYPE,
    "max_attempts": INT,
}


def columns(types: dict) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


@pytest.mark.parametrize(
    ("types", "queue"),
    [(TEXT, "q"), (ALL, "q"), (ALL | {"queue": TEXT_TYPE}, None), (TEXT | {"group": NullType()}, "q")],
)
def test_columns_that_may_be_written(types, queue) -> None:
    check_columns(columns(types), queue)


@pytest.mark.parametrize(
    ("types", "queue", "reason"),
    [
        ({"contents": TEXT_TYPE}, "q", "a message has no column 'contents'; did you mean 'content'"),
        (TEXT | {"zzz": TEXT_TYPE}, "q", "a message has no column 'zzz': there are content, priority"),
        ({"priority": INT}, "q", "column 'content' is missing"),
        ({"content": INT}, "q", "column 'content' is int, and string is wanted"),
        ({"content": NullType()}, "q", "column 'content' is void, and string is wanted"),
        (
            TEXT | {"process_after": TEXT_TYPE},
            "q",
            "column 'process_after' is string, and timestamp is wanted",
        ),
        (TEXT | {"process_after": TimestampNTZType()}, "q", "'process_after' is timestamp_ntz"),
        (TEXT | {"attributes": ArrayType(TEXT_TYPE)}, "q", "and map<string,string> is wanted"),
        (TEXT | {"attributes": MapType(TEXT_TYPE, INT)}, "q", "'attributes' is map<string,int>"),
        (TEXT, None, "where do the messages go"),
        (TEXT | {"queue": TEXT_TYPE}, "q", "drop one of them"),
    ],
)
def test_columns_that_may_not(types, queue, reason) -> None:
    with pytest.raises(ForqSchemaError, match=reason):
        check_columns(columns(types), queue)


def test_a_row_becomes_a_message() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)
    rows = pa.RecordBatch.from_pylist(
        [
            {
                "content": "ä\u2028\0",
                "priority": 3,
                "delay_ms": None,
                "process_after": at,
                "attributes": [("a", "b"), ("", "ü")],
                "group": "g",
                "deduplication_id": "d",
                "queue": "one",
            },
            {"content": "", "priority": None, "delay_ms": 5, "queue": "two"},
        ],
        schema=arrow_schema(columns(ALL | {"queue": TEXT_TYPE})),
    )
    assert list(messages_of([rows], None)) == [
        (
            "one",
            NewMessage(
                "ä\u2028\0",
                process_after=1_767_323_045_678,
                priority=3,
                attributes={"a": "b", "": "ü"},
                deduplication_id="d",
                group="g",
            ),
        ),
        ("two", NewMessage("", delay_ms=5)),
    ]


@pytest.mark.parametrize("name", ["content", "queue"])
def test_a_row_without_content_or_queue_is_refused(name) -> None:
    row = {"content": "c", "queue": "q"} | {name: None}
    rows = pa.RecordBatch.from_pylist([row], schema=arrow_schema(columns(TEXT | {"queue": TEXT_TYPE})))
    with pytest.raises(ForqSchemaError, match=f"column '{name}' is null in a row"):
        list(messages_of([rows], None))


def test_pages_have_about_half_a_mebibyte_and_as_many_messages_as_the_server_takes() -> None:
    few_large = [("q", NewMessage("x" * CONTENT_BYTES_MAX))] * 20
    many_small = [("r", NewMessage(str(number))) for number in range(STAGE_PAGE_MESSAGES_MAX + 1)]
    one_huge = [("s", NewMessage("\0" * CONTENT_BYTES_MAX))] * 2  # \u0000 in JSON
    pages = list(pages_of([*few_large, *many_small, *one_huge]))
    assert [len(page) for queue, page in pages if queue == "r"] == [STAGE_PAGE_MESSAGES_MAX, 1]
    assert [len(page) for queue, page in pages if queue == "q"] == [1] * 20
    assert [len(page) for queue, page in pages if queue == "s"] == [1, 1]
    assert [message for queue, page in pages if queue == "r" for message in page] == [
        message for _, message in many_small
    ]


def test_the_open_pages_of_many_queues_are_bounded_together() -> None:
    taken = 0

    def messages(queues: int) -> Iterator[tuple[str, NewMessage]]:
        nonlocal taken
        for number in range(3 * queues):
            taken += 1
            yield f"q{number % queues}", NewMessage(f"{number:07}" + "x" * 200_000)

    sent, most = 0, 0
    found: dict[str, list[str]] = {}
    for queue, page in pages_of(messages(100)):
        most = max(most, taken - sent)
        sent += len(page)
        found.setdefault(queue, []).extend(message.content[:7] for message in page)
    assert most * 200_000 <= OPEN_BYTES_MAX + 200_000
    assert found == {f"q{n}": [f"{n + 100 * turn:07}" for turn in range(3)] for n in range(100)}


@pytest.mark.parametrize(
    ("partitions", "queues", "advice"),
    [(1_001, 1, r"coalesce\(1000\)"), (200, 50, r"repartition\('queue'\)"), (2, 1_001, "write fewer queues")],
)
def test_who_publishes_too_many_stages_is_told_what_to_do(partitions, queues, advice) -> None:
    tasks = [
        TaskStages(None, part, tuple(Stage(f"q{n}", "s", 1) for n in range(queues)))
        for part in range(partitions)
    ]
    with pytest.raises(
        ForqDataSourceError, match=f"{partitions:,} partitions .* {queues:,} queues.*{advice}"
    ):
        publish(parsed({}, "write"), "app", 1, tasks)


def test_a_message_becomes_a_row_with_exactly_the_columns() -> None:
    options = parsed({"queue": "q", "includeAttributes": "true"}, "read")
    schema = arrow_schema(schema_of(options))
    messages = [
        ExportedMessage("id", "q", 2**40, "ä\0", 1_767_323_045_678, 2, 7, "g", {"k": "v"}, "ready"),
        ExportedMessage("id", "q", 1, "x" * CONTENT_BYTES_MAX, 0),
    ]
    batch = batch_of(messages, schema)
    assert batch.schema.equals(schema)
    first, second = batch.to_pylist()
    assert first == {
        "id": "id",
        "queue": "q",
        "sequence": 2**40,
        "content": "ä\0",
        "priority": 7,
        "attempts": 2,
        "received_at": datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC),
        "group": "g",
        "attributes": [("k", "v")],
        "state": "ready",
    }
    assert (second["attributes"], second["group"], second["state"]) == (None, None, None)


@pytest.mark.parametrize(("after", "until", "count"), [(0, 100, 8), (5, 8, 8), (7, 7, 3), (0, 10**12, 7)])
def test_ranges_cover_everything_once(after, until, count) -> None:
    ranges = cut(after, until, count)
    assert len(ranges) == min(count, until - after)
    assert all(low.until == high.after for low, high in pairwise(ranges))
    assert all(each.until > each.after for each in ranges)
    assert not ranges or (ranges[0].after, ranges[-1].until) == (after, until)
    assert Range(1, 2) == Range(1, 2)


def test_small_reads_have_one_task_and_large_ones_some() -> None:
    assert [tasks_for(rows, None) for rows in (0, 1, 10_000, 10_001, 10**9)] == [1, 1, 1, 2, 8]
    assert tasks_for(1, 16) == 16


def test_our_words_are_found_in_what_spark_says() -> None:
    said = "[ERROR] Failed: Traceback\n  File x\npyspark_forq.errors.ForqSchemaError: our words\n SQLSTATE: 38000"
    assert reason_of(ForqDataSourceError(said)) == "our words"
    assert reason_of(ValueError("another")) is None


def test_the_package_has_the_pipelines_as_functions() -> None:
    names = {"archive", "archived", "compact", "load", "reason_of", "replay", "report", "session"}
    assert names < set(pyspark_forq.__all__)
    assert all(callable(getattr(pyspark_forq, name)) for name in pyspark_forq.__all__)
