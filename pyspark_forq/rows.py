"""The server's records as Arrow, with exactly the columns that Spark expects."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_forq.versions import ARROW_ZONE


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns as Arrow has them; Spark compares them with what it makes of the same schema."""
    return to_arrow_schema(schema, timezone="UTC") if ARROW_ZONE.is_in() else to_arrow_schema(schema)


def batch_of(
    records: Sequence[object], schema: pa.Schema, same: Mapping[str, str] | None = None
) -> pa.RecordBatch:
    """A row for each record, whose members have the columns' names. same: values of columns that all rows share."""
    columns = [_column(records, field, same or {}) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(records: Sequence[object], field: pa.Field, same: Mapping[str, str]) -> pa.Array:
    if field.name in same:
        return pa.array([same[field.name]] * len(records), field.type)
    values: list[Any] = list(map(attrgetter(field.name), records))
    if pa.types.is_timestamp(field.type):
        return pa.array(values, pa.timestamp("ms", "UTC")).cast(field.type)
    if pa.types.is_map(field.type):
        values = [None if value is None else list(value.items()) for value in values]
    return pa.array(values, field.type)
