"""Writes the batches of a drained queue into files, each message once.

The files of a lease have a directory of their own, `lease=<consumer>-<number>-<when it was made>`. A repeated batch has
the same lease and replaces its files. No other batch of any query, checkpoint, consumer or server has that lease, so no
other files are replaced.
"""

from pyspark.sql import DataFrame

from pyspark_forq.columns import LEASE
from pyspark_forq.errors import ForqSchemaError
from pyspark_forq.staging import remove_staging


def write_once(rows: DataFrame, path: str, *, format: str = "parquet") -> None:
    """Write a batch of mode `consume` as files, for `foreachBatch`. A repeated batch replaces what it wrote before.

    rows: the batch, or what was made of it, with the column `lease` unchanged. path: the directory of the
    table, which may have batches of several queries, and gets the column `lease`. format: of Spark's file sources. What
    killed attempts left there is removed a day later, but not behind Spark Connect (staging.py).
    Raises ForqSchemaError without that column, and what Spark raises.
    """
    if LEASE not in rows.columns:
        raise ForqSchemaError(
            f"column {LEASE!r} is missing: it names the files, so that a batch replaces itself and nothing else."
            " Keep it in what you select"
        )
    writer = rows.write.format(format).mode("overwrite").partitionBy(LEASE)
    writer.option("partitionOverwriteMode", "dynamic").save(path)
    remove_staging(rows.sparkSession, path)
