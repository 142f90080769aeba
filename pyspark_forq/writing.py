"""Writes to queues, in two phases: tasks stage pages of messages on the server, and the driver publishes them at once.

Each attempt of a task has a stage with a name of its own, so the stage of a lost attempt is never published, and
expires by itself. A publication has an app and a version, and is not published twice:

- for a stream, the query's id (that of its checkpoint) and the number of the micro-batch;
- for a batch, the options txnAppId and txnVersion, or without them an id of this write, which Spark makes once.

Only tasks know a query's id, so it travels in the messages with which they commit.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from forq_trio.client.sync_pipelines import Pipelines
from forq_trio.model.errors import ForqError
from forq_trio.model.limits import PUBLISH_STAGES_MAX
from forq_trio.model.publishing.types import Stage
from pyspark_forq.errors import ForqDataSourceError
from pyspark_forq.messages import messages_of, pages_of
from pyspark_forq.options import Options
from pyspark_forq.server import ask, in_our_words

QUERY = "sql.streaming.queryId"
_STREAM_BATCH = "streaming.sql.batchId"


@dataclass(frozen=True)
class TaskStages(WriterCommitMessage):
    """What a task has staged. query: the streaming query's id, None in a batch."""

    query: str | None
    partition: int
    stages: tuple[Stage, ...]


def stage(options: Options, batches: Iterable[pa.RecordBatch]) -> TaskStages:
    """Stage the rows of a task; the rows of a queue keep their order."""
    context = TaskContext.get()
    assert context is not None
    query = context.getLocalProperty(QUERY)
    batch = context.getLocalProperty(_STREAM_BATCH)
    name = f"{batch or 'batch'}-{context.partitionId()}-{uuid4().hex}"
    pages: dict[str, int] = {}
    with in_our_words(options):
        for queue, messages in pages_of(messages_of(batches, options.queue)):
            page = pages.get(queue, 0)
            ask(options, Pipelines.stage, queue, name, page, messages)
            pages[queue] = page + 1
    stages = tuple(Stage(queue, name, count) for queue, count in pages.items())
    return TaskStages(query, context.partitionId(), stages)


def publish(
    options: Options, app: str, version: int, staged: Sequence[TaskStages], *, once: bool = False
) -> None:
    """Publish what the tasks staged, in the order of their partitions. Does nothing if that was done already.

    once: the app is the id of this write, which has one version only.
    """
    in_order = sorted(staged, key=lambda each: each.partition)
    stages = [stage for each in in_order for stage in each.stages]
    if not stages:
        return
    if len(stages) > PUBLISH_STAGES_MAX:
        raise _too_many(len(in_order), stages)
    with in_our_words(options):
        ask(options, Pipelines.publish, app, version, stages, once=once)


def _too_many(partitions: int, stages: Sequence[Stage]) -> ForqDataSourceError:
    """The error that advises how to have fewer stages: a partition has one for each of its queues."""
    queues = len({stage.queue for stage in stages})
    advice = "write fewer queues at a time"
    if queues == 1:
        advice = f"write rows.coalesce({PUBLISH_STAGES_MAX})"
    elif queues <= PUBLISH_STAGES_MAX:
        advice = "write rows.repartition('queue'), which brings the rows of each queue together"
    return ForqDataSourceError(
        f"{partitions:,} partitions have messages for {queues:,} queues, {len(stages):,} parts in all, and at most"
        f" {PUBLISH_STAGES_MAX:,} are published at once: {advice}"
    )


def discard(options: Options, staged: Iterable[TaskStages]) -> None:
    """Discard the stages of tasks; a stage that cannot be discarded now expires by itself."""
    hasty = replace(options, retry_seconds=0)
    for each in staged:
        for part in each.stages:
            try:
                ask(hasty, Pipelines.discard_stage, part.queue, part.stage)
            except ForqError:
                return


def present(messages: Sequence[WriterCommitMessage | None]) -> list[TaskStages]:
    """The stages of the tasks that have finished."""
    return [message for message in messages if isinstance(message, TaskStages)]


class BatchWriter(DataSourceArrowWriter):
    """Writes the rows of a data frame."""

    def __init__(self, options: Options) -> None:
        self._options = options
        # Spark makes one writer for the whole write and sends copies of it to the tasks.
        self._app = options.txn_app_id or f"spark-write-{uuid4()}"
        self._version = options.txn_version or 0

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskStages:
        """Stage a partition."""
        return stage(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish all partitions at once."""
        is_own = self._options.txn_app_id is None
        publish(self._options, self._app, self._version, present(messages), once=is_own)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Give up what was staged."""
        discard(self._options, present(messages))
