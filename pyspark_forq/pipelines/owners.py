"""The owner of a checkpoint: a file in it names the server, the queue, and other arguments that matter.

Spark's checkpoint has the progress of a query, but not its server. A checkpoint of another server would silently skip
messages. So each run stores what it is about, and a run that differs is refused.
"""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from forq_trio.client.address import without_credentials
from forq_trio.model.errors import InvalidRequest

FILE = "forq.json"


def server_of(url: str) -> str:
    """A server's URL as the name of an owner, without a user and password that it may have."""
    return without_credentials(url.rstrip("/"))


def check_owner(spark: SparkSession, checkpoint: str, about: Mapping[str, str | None], *, log: str) -> None:
    """Note what the query of this checkpoint is about. Raises InvalidRequest if it is about something else.

    log: the log of Spark's (offsets or commits) which has entries from when on that matters; before, it is noted anew.
    """
    files = _Files(spark, checkpoint)
    before = files.read(FILE) if files.has_entries(log) else None
    known = dict(about) if before is None else json.loads(before)
    differing = [name for name, value in about.items() if known.get(name) != value]
    if differing:
        words = ", ".join(
            f"{name} {_shown(known.get(name))}, not {_shown(about[name])}" for name in differing
        )
        raise InvalidRequest(
            f"the checkpoint {checkpoint} is of {words}: use another one. If that is the same under another name, put"
            f" it into {checkpoint}/{FILE}"
        )
    if before is None:
        files.write(FILE, json.dumps(about, indent=2))


def _shown(value: object) -> str:
    return "unset" if value is None else str(value)


class _Files:
    """A directory in any file system that Spark can write to."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        context: Any = spark.sparkContext
        self._java = context._jvm
        self._directory = self._java.org.apache.hadoop.fs.Path(directory)
        self._system = self._directory.getFileSystem(context._jsc.hadoopConfiguration())

    def has_entries(self, name: str) -> bool:
        path = self._path(name)
        if not self._system.exists(path):
            return False
        return any(status.getPath().getName().isdigit() for status in self._system.listStatus(path))

    def read(self, name: str) -> str | None:
        """The text of a file, None if there is none."""
        path = self._path(name)
        if not self._system.exists(path):
            return None
        stream = self._system.open(path)
        try:
            text: str = self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        return text

    def write(self, name: str, text: str) -> None:
        stream = self._system.create(self._path(name), True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def _path(self, name: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(self._directory, name)
