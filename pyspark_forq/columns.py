"""The columns that a data frame needs to be written: a row is a message, its columns are the members."""

from difflib import get_close_matches
from typing import NamedTuple

from pyspark.sql.types import (
    ByteType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from pyspark_forq.errors import ForqSchemaError

LEASE = "lease"
"""The column that identifies the lease in which a message was read; its text is unique, even among servers."""

_WHOLE = (ByteType, ShortType, IntegerType, LongType)


class Column(NamedTuple):
    """A column that may be written. wanted: its type in Spark's words."""

    name: str
    types: tuple[type[DataType], ...]
    wanted: str


COLUMNS = {
    column.name: column
    for column in (
        Column("content", (StringType,), "string"),
        Column("priority", _WHOLE, "int"),
        Column("delay_ms", _WHOLE, "bigint"),
        Column("ttl_ms", _WHOLE, "bigint"),
        Column("process_after", (TimestampType,), "timestamp"),
        Column("attributes", (MapType,), "map<string,string>"),
        Column("group", (StringType,), "string"),
        Column("deduplication_id", (StringType,), "string"),
        Column("max_attempts", _WHOLE, "int"),
        Column("queue", (StringType,), "string"),
    )
}


def check_columns(schema: StructType, queue: str | None) -> None:
    """Raise ForqSchemaError unless rows with this schema can be messages. queue: that of the options."""
    names = schema.fieldNames()
    for field in schema:
        _check(field.name, field.dataType)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ForqSchemaError(f"column {repeated[0]!r} is there twice")
    if "content" not in names:
        nearest = get_close_matches("content", names, n=1)
        raise ForqSchemaError(
            "column 'content' is missing: it is the message's text"
            + (f"; is it {nearest[0]!r}?" if nearest else f" (there are {', '.join(names) or 'no columns'})")
        )
    if queue is None and "queue" not in names:
        raise ForqSchemaError("where do the messages go? give option 'queue', or a column 'queue'")
    if queue is not None and "queue" in names:
        raise ForqSchemaError("there are an option 'queue' and a column 'queue': drop one of them")


def _check(name: str, kind: DataType) -> None:
    column = COLUMNS.get(name)
    if column is None:
        nearest = get_close_matches(name, COLUMNS, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else f": there are {', '.join(COLUMNS)}"
        raise ForqSchemaError(f"a message has no column {name!r}{hint}")
    fits = isinstance(kind, column.types) or (isinstance(kind, NullType) and name != "content")
    if isinstance(kind, MapType):
        fits = fits and isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)
    if not fits:
        raise ForqSchemaError(f"column {name!r} is {kind.simpleString()}, and {column.wanted} is wanted")
