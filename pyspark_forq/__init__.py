"""Forq for Apache Spark: the data source `forq`, a session that has it, and pipelines (the extra `forq-trio[spark]`).

Spark imports every module named pyspark_… for each session, also for one that never uses it, and registers its
`DefaultSource`: that is where `format("forq")` comes from. So a module is imported when a name of it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark_forq.errors import ForqDataSourceError as ForqDataSourceError
    from pyspark_forq.errors import reason_of as reason_of
    from pyspark_forq.lease_files import write_once as write_once
    from pyspark_forq.pipelines.archive import archive as archive
    from pyspark_forq.pipelines.archive import archived as archived
    from pyspark_forq.pipelines.compact import compact as compact
    from pyspark_forq.pipelines.load import load as load
    from pyspark_forq.pipelines.replay import replay as replay
    from pyspark_forq.pipelines.report.write import report as report
    from pyspark_forq.source import ForqDataSource as DefaultSource
    from pyspark_forq.source import ForqDataSource as ForqDataSource
    from pyspark_forq.spark_session import session as session
    from pyspark_forq.starting import start_in_turn as start_in_turn

_HOMES = {
    "DefaultSource": ("source", "ForqDataSource"),
    "ForqDataSource": ("source", "ForqDataSource"),
    "ForqDataSourceError": ("errors", "ForqDataSourceError"),
    "archive": ("pipelines.archive", "archive"),
    "archived": ("pipelines.archive", "archived"),
    "compact": ("pipelines.compact", "compact"),
    "load": ("pipelines.load", "load"),
    "reason_of": ("errors", "reason_of"),
    "replay": ("pipelines.replay", "replay"),
    "report": ("pipelines.report.write", "report"),
    "session": ("spark_session", "session"),
    "start_in_turn": ("starting", "start_in_turn"),
    "write_once": ("lease_files", "write_once"),
}

__all__ = [
    "DefaultSource",
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
    "start_in_turn",
    "write_once",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(f"{__name__}.{module}"), attribute)
