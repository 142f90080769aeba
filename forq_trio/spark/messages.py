"""Rows of a data frame as messages, and messages as pages that the server takes."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from forq_trio.client.types import NewMessage
from forq_trio.model.limits import PRIORITY_DEFAULT
from forq_trio.spark.errors import ForqSchemaError
from forq_trio.wire.limits import STAGE_PAGE_BYTES_MAX, STAGE_PAGE_MESSAGES_MAX

PAGE_MESSAGES = 2_500
PAGE_BYTES = 512 * 1_024
"""A larger page would be one long step of the server, for which the calls of others wait."""

assert PAGE_MESSAGES <= STAGE_PAGE_MESSAGES_MAX
assert PAGE_BYTES <= STAGE_PAGE_BYTES_MAX


def messages_of(batches: Iterable[pa.RecordBatch], queue: str | None) -> Iterator[tuple[str, NewMessage]]:
    """Each row's queue and message; queue: the one of the options, None when a column says it."""
    for batch in batches:
        columns = {
            name: _values(name, column)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
        queues = columns.pop("queue", None) or [queue] * batch.num_rows
        names = list(columns)
        for target, row in zip(queues, zip(*columns.values(), strict=True), strict=True):
            yield target, NewMessage(**dict(zip(names, row, strict=True)))


def _values(name: str, column: pa.Array) -> list[Any]:
    if name in ("content", "queue") and column.null_count:
        raise ForqSchemaError(f"column {name!r} is null in a row")
    if name == "priority":
        column = pc.fill_null(column, pa.scalar(PRIORITY_DEFAULT, column.type))
    if name == "process_after":
        column = (
            pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        )
    values: list[Any] = column.to_pylist()
    if name == "attributes":
        return [None if value is None else dict(value) for value in values]
    return values


def pages_of(messages: Iterable[tuple[str, NewMessage]]) -> Iterator[tuple[str, list[NewMessage]]]:
    """Pages of one queue each, of PAGE_MESSAGES and PAGE_BYTES at most, or one message; those of a queue in order."""
    open_pages: dict[str, tuple[list[NewMessage], int]] = {}
    for queue, message in messages:
        page, size = open_pages.get(queue) or ([], 0)
        length = len(msgspec.json.encode(message)) + 1
        if page and (len(page) == PAGE_MESSAGES or size + length > PAGE_BYTES):
            yield queue, page
            page, size = [], 0
        page.append(message)
        open_pages[queue] = (page, size + length)
    for queue, (page, _) in open_pages.items():
        yield queue, page
