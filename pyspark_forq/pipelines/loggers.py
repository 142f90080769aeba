"""What pyspark logs about a failed query goes elsewhere than to stderr: it says all that the error says, at length."""

from logging import Handler

from pyspark.logger import PySparkLogger

_NAMES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def send_query_logs_to(handler: Handler) -> None:
    """For the rest of the process; pyspark itself gives each of these loggers a handler for stderr."""
    for name in _NAMES:
        PySparkLogger.getLogger(name).handlers[:] = [handler]
