"""Dead letters of a queue, as rows of its history: those that are in its dead-letter queue, and those that ended there.

The queue is read first, then the history up to an id that was asked for afterwards. So a dead letter that ends
meanwhile is in one of them or in both, and what is in both is taken from the history. The queue stays as it is.
"""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from forq_trio.client.sync import ForqClient
from forq_trio.model.errors import InvalidRequest
from pyspark_forq.logs import bounds
from pyspark_forq.options import parsed
from pyspark_forq.pipelines.archive import between, source_options
from pyspark_forq.server import ask_as
from pyspark_forq.spark_conf import defaults_of

DEAD_LETTERED = "dead_lettered"
"""The outcome of the rows."""
_SAME = ("id", "queue", "sequence", "content", "priority", "received_at", "group", "attributes")


def with_dead_letters(
    spark: SparkSession, queue: str, *, url: str, token: str | None, since: str | None, until: str | None
) -> DataFrame:
    """The server's history of `queue`, and the messages that went from it to the dead-letter queue of its settings.

    Those have the columns of a history: `queue` is the dead-letter queue, `outcome` is DEAD_LETTERED, `finished_at`,
    `reason` and `attempts` are of their move; since and until choose by it. One more column, `dead_letter_outcome`, is
    how they ended there, null while they have not. Raises InvalidRequest if the queue has no dead-letter queue.
    """
    own = source_options("history", url, token, queue)
    options = parsed(own, "read", defaults_of(spark))
    target = ask_as(ForqClient, options, ForqClient.settings, queue).effective.dead_letter_queue
    if not target:
        raise InvalidRequest(f"{queue} has no dead-letter queue")
    of_target = own | {"queue": target, "includeOrigin": "true"}

    def read(given: dict[str, str]) -> DataFrame:
        return spark.read.format("forq").options(**given).load()

    def moved(rows: DataFrame, number: Column, outcome: Column) -> DataFrame:
        rows = rows.where(f.col("source_queue") == queue).select(
            *_SAME,
            f.col("source_attempts").alias("attempts"),
            number.cast("long").alias("history_id"),
            f.lit(DEAD_LETTERED).alias("outcome"),
            f.col("failure_reason").alias("reason"),
            f.col("dead_lettered_at").alias("finished_at"),
            outcome.cast("string").alias("dead_letter_outcome"),
        )
        return between(rows, "finished_at", None, since, until)

    _, before = bounds(options)
    waiting = moved(read(of_target | {"mode": "snapshot"}), f.lit(None), f.lit(None)).localCheckpoint()
    _, last = bounds(options)
    for log in (own, of_target) if last > before else ():
        ends = read(log | {"startingOffsets": str(before + 1), "endingOffsets": str(last)})
        waiting = waiting.join(ends.select("id"), "id", "left_anti")
    until_last = f.col("history_id") <= last
    ended = moved(read(of_target).where(until_last), f.col("history_id"), f.col("outcome"))
    finished = between(read(own).where(until_last), "finished_at", None, since, until)
    return finished.withColumn("dead_letter_outcome", f.lit(None).cast("string")).unionByName(
        ended.unionByName(waiting)
    )
