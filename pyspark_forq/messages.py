"""Rows of a data frame as messages, and messages as pages that the server takes."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from forq_trio.model.limits import PRIORITY_DEFAULT, STAGE_PAGE_BYTES_MAX, STAGE_PAGE_MESSAGES_MAX
from forq_trio.model.messages.new_message import NewMessage
from pyspark_forq.errors import ForqSchemaError

PAGE_BYTES = 2**19
"""The most bytes of JSON in a page, unless one message alone has more. The server takes larger pages, but other callers
would wait longer beside them."""
OPEN_BYTES_MAX = 16 * PAGE_BYTES
"""The most bytes of all pages that a task is filling, one for each of its queues."""
assert PAGE_BYTES < STAGE_PAGE_BYTES_MAX

_FILLED_BY_SERVER = frozenset({"id", "sequence", "attempts", "received_at", "state", "lease"})
"""Columns of a table whose values the server gives; a message is sent without them."""


def messages_of(batches: Iterable[pa.RecordBatch], queue: str | None) -> Iterator[tuple[str, NewMessage]]:
    """The queue and message of each row. queue: that of the options; None if a column has it."""
    for batch in batches:
        columns = {
            name: _values(name, column)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
        for name in _FILLED_BY_SERVER & columns.keys():
            if any(value is not None for value in columns.pop(name)):
                raise ForqSchemaError(
                    f"the server gives a message its {name!r}: name the columns that are inserted, as in"
                    " INSERT INTO orders (content, priority)"
                )
        queues = _queues(columns.pop("queue", None), queue, batch.num_rows)
        names = list(columns)
        for target, row in zip(queues, zip(*columns.values(), strict=True), strict=True):
            yield target, NewMessage(**dict(zip(names, row, strict=True)))


def _queues(column: list[str | None] | None, queue: str | None, rows: int) -> list[str]:
    """The queue of each row. A table has a queue of its own, and a column, which is NULL if nothing was inserted."""
    named = [queue if each is None else each for each in column or [queue] * rows]
    if queue is not None and any(each != queue for each in named):
        raise ForqSchemaError(f"the table is that of queue {queue!r}, and column 'queue' names another one")
    if None in named:
        raise ForqSchemaError("column 'queue' is null in a row")
    return cast("list[str]", named)


def _values(name: str, column: pa.Array) -> list[Any]:
    if name == "content" and column.null_count:
        raise ForqSchemaError("column 'content' is null in a row")
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
    """Collect messages into pages of one queue each, in order. The largest page is sent first when all open pages
    together would pass OPEN_BYTES_MAX.
    """
    pages: dict[str, list[NewMessage]] = {}
    sizes: dict[str, int] = {}
    open_bytes = 0
    for queue, message in messages:
        length = len(msgspec.json.encode(message)) + 1
        size = sizes.get(queue, 0)
        if size and (len(pages[queue]) == STAGE_PAGE_MESSAGES_MAX or size + length > PAGE_BYTES):
            open_bytes -= sizes.pop(queue)
            yield queue, pages.pop(queue)
        elif open_bytes + length > OPEN_BYTES_MAX:
            largest = max(sizes, key=sizes.__getitem__)
            open_bytes -= sizes.pop(largest)
            yield largest, pages.pop(largest)
        pages.setdefault(queue, []).append(message)
        sizes[queue] = sizes.get(queue, 0) + length
        open_bytes += length
    yield from pages.items()
