"""Forq for Apache Spark: the data source `forq`, a session that has it, and pipelines (the extra `forq-trio[spark]`).

Imported when a name is first used: pyspark is 490 MB that only they need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forq_trio.spark.errors import ForqDataSourceError as ForqDataSourceError
    from forq_trio.spark.errors import reason_of as reason_of
    from forq_trio.spark.lease_files import write_once as write_once
    from forq_trio.spark.pipelines.archive import archive as archive
    from forq_trio.spark.pipelines.archive import archived as archived
    from forq_trio.spark.pipelines.compact import compact as compact
    from forq_trio.spark.pipelines.load import load as load
    from forq_trio.spark.pipelines.replay import replay as replay
    from forq_trio.spark.pipelines.report.write import report as report
    from forq_trio.spark.source import ForqDataSource as ForqDataSource
    from forq_trio.spark.spark_session import session as session

_MODULES = {
    "ForqDataSource": "source",
    "ForqDataSourceError": "errors",
    "archive": "pipelines.archive",
    "archived": "pipelines.archive",
    "compact": "pipelines.compact",
    "load": "pipelines.load",
    "reason_of": "errors",
    "replay": "pipelines.replay",
    "report": "pipelines.report.write",
    "session": "spark_session",
    "write_once": "lease_files",
}

__all__ = [
    "ForqDataSource",
    "ForqDataSourceError",
    "archive",
    "archived",
    "compact",
    "load",
    "reason_of",
    "replay",
    "report",
    "session",
    "write_once",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
