"""A Spark session with the data source and the settings of the pipelines."""

import os
import sys
from collections.abc import Mapping
from logging import Handler

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from pyspark_forq.spark_conf import is_connect, register

_SETTINGS = {"spark.sql.session.timeZone": "UTC"}
_OF_A_DRIVER = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
"""Settings that a session of Spark Connect cannot change."""
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def session(app_name: str = "forq", **conf: str) -> SparkSession:
    """The Spark session with the data source `forq` registered: the active one, or a new one with this name.

    conf: further settings by their names (`**{"spark.master": "local[4]"}`); those named spark.forq.… are options of
    all reads and writes (spark_conf.py). Without a master, spark-submit's is taken, or every core of this machine; with
    `spark.remote`, or SPARK_REMOTE in the environment, a server of Spark Connect. Python workers run the Python of this
    process: Spark would take the PATH's.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    settings = _SETTINGS | ({} if connects(conf) else _OF_A_DRIVER) | conf
    spark = SparkSession.getActiveSession()
    if spark is not None and is_connect(spark):  # a builder would want its address again
        for name, value in settings.items():
            spark.conf.set(name, value)
    else:
        builder = SparkSession.builder.appName(app_name)
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
    register(spark)
    return spark


def connects(conf: Mapping[str, str]) -> bool:
    """Whether a session with these settings reaches its driver by Spark Connect."""
    return "spark.remote" in conf or "SPARK_REMOTE" in os.environ or is_remote()


def send_query_logs_to(handler: Handler) -> None:
    """Send pyspark's long log messages about failed queries to `handler`; the error says the same.

    For the rest of the process; pyspark itself gives each of these loggers a handler for stderr.
    """
    for name in _QUERY_LOGGERS:
        PySparkLogger.getLogger(name).handlers[:] = [handler]
