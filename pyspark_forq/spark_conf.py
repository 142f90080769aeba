"""Spark's configuration as options of every read and write: `spark.forq.url`, `spark.forq.tokenFile` and their like.

Spark passes the options of a call to a data source, but nothing of its configuration. So `session` registers a class
that contains the values: they travel like code, and are in no plan, table or checkpoint.
"""

from difflib import get_close_matches
from typing import Any

from pyspark.sql import SparkSession

from pyspark_forq.errors import ForqOptionError
from pyspark_forq.options import members_of, token_of_environment
from pyspark_forq.source import ForqDataSource
from pyspark_forq.versions import SETTINGS

PREFIX = "spark.forq."
NAMES = ("url", "token", "tokenFile", "caFile", "retrySeconds")


def is_connect(spark: SparkSession) -> bool:
    """Whether the session reaches its driver by Spark Connect, so that it is another process, perhaps elsewhere."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def defaults_of(spark: SparkSession) -> dict[str, Any]:
    """Members of Options, by the configuration of a session; files are read where this runs. Raises ForqOptionError.

    Behind Spark Connect the token of this process is among them: the driver does not have its environment.
    """
    given = {
        name.removeprefix(PREFIX): text for name, text in spark.conf.getAll.items() if name.startswith(PREFIX)
    }
    for name in given:
        if name not in NAMES:
            nearest = get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {PREFIX}{nearest[0]}?" if nearest else f"there are {', '.join(NAMES)}"
            raise ForqOptionError(f"there is no setting {PREFIX}{name}: {hint}")
    members = members_of({name.lower(): text for name, text in given.items()})
    token = token_of_environment()
    if token is not None and is_connect(spark) and SETTINGS.is_in(spark.version):
        members.setdefault("token", token)
    return members


def register(spark: SparkSession) -> None:
    """Make the data source known to a session, with its defaults.

    Raises ForqDataSourceError if there are defaults and Spark is too old for them.
    """
    defaults = defaults_of(spark)
    if defaults:
        SETTINGS.need(spark.version)
        spark.dataSource.register(type("ConfiguredDataSource", (ForqDataSource,), {"defaults": defaults}))
    elif SETTINGS.is_in(spark.version):  # before, Spark finds it by its module, and refuses another
        spark.dataSource.register(ForqDataSource)
