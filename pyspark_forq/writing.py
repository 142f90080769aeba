"""Writes to queues, in two phases: tasks stage pages of messages on the server, and the driver publishes them at once.

A stage has a name that no other attempt of a task has, so what a lost attempt staged is never published, and ends by
itself. A publication has an application and a version; one that is there is not published again:

- of a stream, the query's id (of its checkpoint) and the number of the micro-batch;
- of a batch, options txnAppId and txnVersion; without them an id of this write, which Spark makes once.

A query's id is known to tasks only, so it travels in the messages with which they commit.
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
from forq_trio.model.publishing import Stage
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
    """Stage the rows of a task, those of each queue in their order."""
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
    """Publish what the tasks staged, in the order of their partitions; nothing, when that was done already.

    once: the app is this write.
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
    """What to do: a partition has a stage for each of its queues, so there are fewest where each queue is in one."""
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
    """Discard the stages of tasks; a stage that cannot be reached now ends by itself."""
    hasty = replace(options, retry_seconds=0)
    for each in staged:
        for part in each.stages:
            try:
                ask(hasty, Pipelines.discard_stage, part.queue, part.stage)
            except ForqError:
                return


def present(messages: Sequence[WriterCommitMessage | None]) -> list[TaskStages]:
    """What the tasks have staged that came to an end."""
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
