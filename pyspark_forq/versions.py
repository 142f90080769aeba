"""The features of a Python data source that depend on Spark's version. All else is the same from 4.0 on.

Before 4.2 Spark asks a stream for its latest offset without saying what has been written, and without a limit, so a
drain could not know what to acknowledge. Before 4.1 a sink gets a stream's rows without their types, and a data source
that Spark has found by its module cannot be registered again with settings.
"""

import re
from typing import NamedTuple

import pyspark

from pyspark_forq.errors import ForqDataSourceError


class Feature(NamedTuple):
    """A feature: what a user writes, the first version in which it works, and what works in older ones."""

    use: str
    since: tuple[int, int]
    instead: str

    def need(self, version: str = pyspark.__version__) -> None:
        """Raise ForqDataSourceError, which names both versions, if `version` is older."""
        if not self.is_in(version):
            needed = ".".join(map(str, self.since))
            raise ForqDataSourceError(
                f"{self.use} needs Spark {needed} or newer, and this is {version}: {self.instead}"
            )

    def is_in(self, version: str = pyspark.__version__) -> bool:
        """Whether `version` has it."""
        return tuple(int(number) for number in re.findall(r"\d+", version)[:2]) >= self.since


DATA_SOURCES = Feature("format('forq')", (4, 0), "earlier ones know no data sources of Python")
STREAM_READS = Feature("spark.readStream", (4, 2), "spark.read works here")
STREAM_WRITES = Feature("df.writeStream", (4, 1), "a batch write in foreachBatch works here")
SETTINGS = Feature("a setting spark.forq.…", (4, 1), "options and the environment work here")
ARROW_ZONE = Feature("a time zone for Spark's Arrow schemas", (4, 2), "it is UTC here")
