"""A Spark session with the data source and the settings of the pipelines."""

import os
import sys
from logging import Handler

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from pyspark_forq.spark_conf import register

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def session(app_name: str = "forq", **conf: str) -> SparkSession:
    """The Spark session with the data source `forq` registered: the active one, or a new one with this name.

    conf: further settings by their names (`**{"spark.master": "local[4]"}`). Without a master, spark-submit's is taken,
    or every core of this machine. Those named spark.forq.… are options of all reads and writes (spark_conf.py). Python
    workers run the Python of this process: Spark would take the PATH's.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    for name, value in (_SETTINGS | conf).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def send_query_logs_to(handler: Handler) -> None:
    """What pyspark logs about a failed query goes to `handler`: it says all that the error says, at length.

    For the rest of the process; pyspark itself gives each of these loggers a handler for stderr.
    """
    for name in _QUERY_LOGGERS:
        PySparkLogger.getLogger(name).handlers[:] = [handler]
