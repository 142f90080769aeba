"""The owner of a checkpoint: the server, the queue, and other arguments that matter, noted in it.

Spark's checkpoint has the progress of a query, but not its server. A checkpoint of another server would silently skip
messages. So each run stores what it is about, and a run that differs is refused. Spark itself writes and reads the
note, in a directory of its own (in older checkpoints a file): so it is wherever the checkpoint is, also behind Spark
Connect.
"""

import json
from collections.abc import Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from forq_trio.client.address import without_credentials
from forq_trio.model.errors import InvalidRequest
from pyspark_forq.pipelines.stores import literal

FILE = "forq.json"


def server_of(url: str) -> str:
    """A server's URL as the name of an owner, without a user and password that it may have."""
    return without_credentials(url.rstrip("/"))


def check_owner(spark: SparkSession, checkpoint: str, about: Mapping[str, str | None], *, log: str) -> None:
    """Note what the query of this checkpoint is about. Raises InvalidRequest if it is about something else.

    log: which of Spark's logs (offsets or commits) tells that the query has begun: while it has no entries, the note is
    written anew.
    """
    place = f"{checkpoint}/{FILE}"
    before = _read(spark, place) if _has_entries(spark, f"{checkpoint}/{log}") else None
    known = dict(about) if before is None else json.loads(before)
    differing = [name for name, value in about.items() if known.get(name) != value]
    if differing:
        words = ", ".join(
            f"{named(name, known.get(name))}, not {named(name, about[name])}" for name in differing
        )
        raise InvalidRequest(
            f"the checkpoint {checkpoint} is of {words}: use another one. If that is the same under another name,"
            f" remove {place}"
        )
    if before is None:
        rows = spark.createDataFrame([(json.dumps(about),)], "value string")
        rows.coalesce(1).write.mode("overwrite").text(place)


def named(name: str, value: object) -> str:
    """Words for a thing to which a checkpoint or an archive belongs. value: None if it belongs to all of them."""
    return f"any {name}" if value is None else f"{name} {value}"


def _has_entries(spark: SparkSession, log: str) -> bool:
    try:
        files = spark.read.text(literal(log)).inputFiles()
    except AnalysisException as problem:
        if problem.getCondition() != "PATH_NOT_FOUND":
            raise
        return False
    return any(name.rpartition("/")[2].isdigit() for name in files)


def _read(spark: SparkSession, place: str) -> str | None:
    """The text of the note at `place`; None if there is none."""
    try:
        rows = spark.read.text(literal(place), wholetext=True).collect()
    except AnalysisException as problem:
        if problem.getCondition() != "PATH_NOT_FOUND":
            raise
        return None
    return "".join(row["value"] for row in rows) or None
