"""The tables that are read and written, as Spark has them: their columns are the members of the server's lines."""

from collections.abc import Iterable
from difflib import get_close_matches

from pyspark.sql.types import (
    ByteType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_forq.columns import ATTRIBUTES, COLUMNS, EVENTS, MESSAGES, OF_MODE, ORIGIN, Column
from pyspark_forq.errors import ForqSchemaError
from pyspark_forq.options import Options

_READ: dict[str, DataType] = {
    "string": StringType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "timestamp": TimestampType(),
    "map<string,string>": MapType(StringType(), StringType()),
}
_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_WRITTEN: dict[str, tuple[type[DataType], ...]] = {
    "string": (StringType,),
    "int": _WHOLE,
    "bigint": _WHOLE,
    "timestamp": (TimestampType,),
    "map<string,string>": (MapType,),
}
"""What a frame may have for a column of a type."""


def schema_of(options: Options) -> StructType:
    """The columns of a read."""
    if options.mode == "events":
        return _schema(EVENTS)
    attributes = ATTRIBUTES if options.include_attributes else ()
    origin = ORIGIN if options.include_origin else ()
    return _schema((*MESSAGES, *attributes, *OF_MODE[options.mode], *origin))


def _schema(columns: Iterable[Column]) -> StructType:
    return StructType([StructField(column.name, _READ[column.type]) for column in columns])


def check_schema(schema: StructType, options: Options) -> None:
    """Raise ForqSchemaError if the user has named other columns than those of the read."""
    wanted = schema_of(options)
    if [(field.name, field.dataType) for field in schema] != [
        (field.name, field.dataType) for field in wanted
    ]:
        raise ForqSchemaError(
            f"the columns of this read are {wanted.simpleString()}: leave out .schema(...), or in SQL the table's"
            " columns, and select what you need"
        )


def is_table(schema: StructType) -> bool:
    """Whether these columns are those of an insert into a SQL table or view: they are those of a read, whatever is
    inserted.
    """
    return schema.fieldNames()[: len(MESSAGES)] == [column.name for column in MESSAGES]


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
    fits = isinstance(kind, _WRITTEN[column.type]) or (isinstance(kind, NullType) and name != "content")
    if isinstance(kind, MapType):
        fits = fits and isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)
    if not fits:
        raise ForqSchemaError(f"column {name!r} is {kind.simpleString()}, and {column.type} is wanted")
