"""Stores the options of `CREATE TABLE … USING forq OPTIONS (…)` for the reads and writes of the table.

Spark passes the options only at the creation, each twice and among its own properties. To a read or write it passes the
table's columns and the query's own options (`WITH (…)`). So the options are stored with the first column, but not a
secret, because everybody may see a table's columns. (tests/spark/test_facts.py has a test of each point.)
"""

import json
from collections.abc import Mapping

from pyspark.sql.types import StructField, StructType

from forq_trio.client.address import without_credentials
from pyspark_forq.errors import ForqOptionError

_STORED = "forq"
_CREATED = "provider"
"""Spark passes this option while a table is created, and at no other time."""
_OPTION = "option."


def created_with(given: Mapping[str, str]) -> dict[str, str] | None:
    """The options of a table that is created, with names in lower case; None where none is. Raises ForqOptionError."""
    if _CREATED not in given:
        return None
    options = {
        name.lower().removeprefix(_OPTION): text
        for name, text in given.items()
        if name.lower().startswith(_OPTION)
    }
    if "token" in options:
        raise ForqOptionError(
            "a table stores no token, which its readers would see: set FORQ_AUTH_SECRET (or FORQ_TOKEN) where Spark"
            " runs, give option 'tokenFile', or give it to each query, as in SELECT * FROM orders WITH (token '…')"
        )
    if (url := options.get("url", "")) != without_credentials(url):
        raise ForqOptionError(
            "a table stores no password, which its readers would see: leave it out of option 'url'"
        )
    return options


def storing(columns: StructType, options: Mapping[str, str]) -> StructType:
    """The columns of a table that is created, with its options."""
    first, *others = columns.fields
    metadata = {_STORED: json.dumps(dict(options))}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def given_to(columns: StructType, given: Mapping[str, str]) -> dict[str, str]:
    """The options of a read or write: those of its table, and those that it has itself."""
    stored = next((field.metadata[_STORED] for field in columns if _STORED in field.metadata), "{}")
    options: dict[str, str] = json.loads(stored)
    return options | {name.lower(): text for name, text in given.items()}
