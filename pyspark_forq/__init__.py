"""Spark looks into modules named pyspark_… by itself: this one registers `format("forq")`.

Spark imports it for every session, also for those that never use it: nothing is loaded here beside the class.
"""

from forq_trio.spark.source import ForqDataSource as DefaultSource

__all__ = ["DefaultSource"]
