"""Makes an archive of the classes that a Spark loads: `python -m spark.archive FILE`.

Java then reads them as they are in memory (class data sharing): a Spark starts with 8 s of processor time, not 15.
"""

import os
import sys
from tempfile import TemporaryDirectory

from pyspark_forq import session
from spark.processes import end_java, submit_arguments


def main(file: str) -> None:
    """Start a Spark, let it do a little of everything, and end it, which writes the archive."""
    os.environ["PYSPARK_SUBMIT_ARGS"] = submit_arguments(f"-XX:ArchiveClassesAtExit={file}")
    with TemporaryDirectory() as directory:
        spark = session("archive", **{"spark.master": "local[2]", "spark.log.level": "OFF"})
        rows = spark.range(10).selectExpr("id", "id % 2 AS part", "CAST(id AS string) AS text")
        rows.write.parquet(f"{directory}/rows")
        read = spark.read.parquet(f"{directory}/rows")
        read.join(rows, "id").groupBy(rows["part"]).count().orderBy("part").collect()
        stream = spark.readStream.schema(rows.schema).parquet(f"{directory}/rows").writeStream
        stream.option("checkpointLocation", f"{directory}/checkpoint").trigger(availableNow=True).start(
            f"{directory}/copy", format="parquet"
        ).awaitTermination()
        spark.stop()
    end_java()


if __name__ == "__main__":
    main(sys.argv[1])
