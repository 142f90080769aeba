"""The tables that are read: their columns as Spark has them, which are the members of the server's lines."""

from pyspark.sql.types import (
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyspark_forq.columns import LEASE
from pyspark_forq.errors import ForqSchemaError
from pyspark_forq.options import Options

_STRING, _INT, _LONG, _TIME = StringType(), IntegerType(), LongType(), TimestampType()

EVENTS = StructType(
    [
        StructField("id", _LONG),
        StructField("at", _TIME),
        StructField("kind", _STRING),
        StructField("queue", _STRING),
        StructField("message_id", _STRING),
        StructField("sequence", _LONG),
        StructField("attempt", _INT),
        StructField("reason", _STRING),
        StructField("target", _STRING),
        StructField("received_at", _TIME),
        StructField("duration_ms", _LONG),
        StructField("bytes", _LONG),
    ]
)
MESSAGES = StructType(
    [
        StructField("id", _STRING),
        StructField("queue", _STRING),
        StructField("sequence", _LONG),
        StructField("content", _STRING),
        StructField("priority", _INT),
        StructField("attempts", _INT),
        StructField("received_at", _TIME),
        StructField("group", _STRING),
    ]
)
_ATTRIBUTES = [StructField("attributes", MapType(_STRING, _STRING))]
_ORIGIN = [
    StructField("source_queue", _STRING),
    StructField("source_attempts", _INT),
    StructField("failure_reason", _STRING),
    StructField("dead_lettered_at", _TIME),
]
_OF_SNAPSHOT = [StructField("state", _STRING)]
_OF_CONSUME = [StructField(LEASE, _STRING)]
_OF_HISTORY = [
    StructField("history_id", _LONG),
    StructField("outcome", _STRING),
    StructField("reason", _STRING),
    StructField("finished_at", _TIME),
]
_ADDED = {"snapshot": _OF_SNAPSHOT, "history": _OF_HISTORY, "consume": _OF_CONSUME}


def schema_of(options: Options) -> StructType:
    """The columns of a read."""
    if options.mode == "events":
        return EVENTS
    attributes = _ATTRIBUTES if options.include_attributes else []
    origin = _ORIGIN if options.include_origin else []
    return StructType([*MESSAGES.fields, *attributes, *_ADDED[options.mode], *origin])


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
    return schema.fieldNames()[: len(MESSAGES)] == MESSAGES.fieldNames()
