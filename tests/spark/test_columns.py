"""Data frames to write: which columns they may have, and the messages and pages that their rows become."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType, _parse_datatype_string

from forq_trio.client.types import NewMessage
from forq_trio.model.limits import CONTENT_BYTES_MAX
from forq_trio.spark.columns import check_columns
from forq_trio.spark.errors import ForqSchemaError
from forq_trio.spark.messages import messages_of, pages_of
from forq_trio.spark.options import parsed
from forq_trio.spark.ranges import Range, cut, tasks_for
from forq_trio.spark.rows import arrow_schema, batch_of
from forq_trio.spark.schemas import schema_of
from forq_trio.wire.export import ExportedMessage
from forq_trio.wire.limits import STAGE_PAGE_BYTES_MAX, STAGE_PAGE_MESSAGES_MAX

ALL = (
    "content string, priority int, delay_ms bigint, ttl_ms int, process_after timestamp, attributes map<string,string>,"
    " `group` string, deduplication_id string, max_attempts smallint"
)


def schema(text: str) -> StructType:
    return StructType.fromDDL(text)


@pytest.mark.parametrize(("text", "queue"), [(ALL, "q"), (f"queue string, {ALL}", None), ("content string, group void", "q")])
def test_columns_that_may_be_written(text, queue) -> None:
    check_columns(schema(text), queue)
