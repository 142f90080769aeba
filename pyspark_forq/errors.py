"""The errors that users see when a read or write of Spark fails.

Spark puts a traceback of its worker before our sentence, and its own words around both; `reason_of` finds the sentence
again.
"""

import re


class ForqDataSourceError(Exception):
    """A read or write of the data source `forq` cannot go on; the message is the reason, and what to do."""


class ForqOptionError(ForqDataSourceError):
    """An option has a name that does not exist, or a value that cannot be"""


class ForqSchemaError(ForqDataSourceError):
    """A data frame does not have the columns that messages are made of"""


class ForqDataLoss(ForqDataSourceError):
    """What was to be read is not on the server any more"""


class ForqConsumerFenced(ForqDataSourceError):
    """Another query has opened the consumer since, or somebody has released it"""


_OURS = re.compile(
    r"pyspark_forq\.errors\.Forq(?:DataSourceError|OptionError|SchemaError|DataLoss|ConsumerFenced): (.+)"
)


def reason_of(problem: BaseException) -> str | None:
    """Our sentence in an exception that Spark raised; None when the reason is not one of ours."""
    found = _OURS.search(str(problem))
    return None if found is None else found[1].strip()
