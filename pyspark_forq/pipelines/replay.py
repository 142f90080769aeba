"""Replay: finished messages, from an archive or the server's history, go into a queue again, as new messages.

A replay has a name, of the caller's or made of what was asked, and is published under it in one transaction: asked
again, also after a kill at any moment, it does nothing. To replay the same messages once more, give another name.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from forq_trio.client.sync import ForqClient
from forq_trio.model.errors import PublicationNotFound
from pyspark_forq.options import Options
from pyspark_forq.pipelines.archive import log_of
from pyspark_forq.pipelines.results import ReplayResult, Show, show_nothing
from pyspark_forq.pipelines.stores import whole
from pyspark_forq.server import ask

_VERSION = 1
_PARTITIONS_MAX = 64
_PARTITION_ROWS = 10_000
_CARRIED = ("content", "priority", "group", "attributes")


def replay(
    spark: SparkSession,
    queue: str,
    *,
    url: str,
    token: str | None = None,
    archive: str | Path | None = None,
    source_queue: str | None = None,
    since: str | None = None,
    until: str | None = None,
    outcomes: Sequence[str] = (),
    ids: Sequence[str] = (),
    where: str | None = None,
    name: str | None = None,
    dry_run: bool = False,
    show: Show = show_nothing,
) -> ReplayResult:
    """Send the chosen messages to `queue`, in the order in which they finished, with content, priority, group and
    attributes.

    archive: where `archive` put them; None: the server's own history. source_queue, outcomes, ids: of these only;
    since, until: when they finished (ISO 8601), the second one excluded; where: an SQL expression over the columns of a
    history. name: under which it is done once; None: made of all these arguments. dry_run: count only.
    """
    place = None if archive is None else whole(archive)
    app = f"replay:{name or _digest(place, queue, source_queue, since, until, sorted(outcomes), sorted(ids), where)}"
    options = Options("write", url=url, token=token)
    if not dry_run and _is_done(options, app):
        return ReplayResult(queue, app, {}, 0, True)
    history = log_of(
        spark, "history", url=url, token=token, archive=place, queue=source_queue, since=since, until=until
    )
    chosen = _chosen(history, outcomes, ids, where)
    show(0, None, "counting")
    matched = {
        row["queue"]: row["count"] for row in chosen.groupBy("queue").count().orderBy("queue").collect()
    }
    total = sum(matched.values())
    if dry_run or not total:
        return ReplayResult(queue, app, matched, 0, False)
    show(0, total, "publishing")
    columns = [name for name in _CARRIED if name in chosen.columns]
    writer = in_order(chosen, total).select(*columns).write.format("forq")
    settings = {"url": url, "queue": queue, "txnAppId": app, "txnVersion": str(_VERSION)}
    if token is not None:
        settings["token"] = token
    writer.options(**settings).mode("append").save()
    show(total, total, "published")
    return ReplayResult(queue, app, matched, total, False)


def in_order(history: DataFrame, total: int) -> DataFrame:
    """Its `total` rows by id, within partitions and from each to the next: the order in which the sink publishes.

    Not coalesced partitions of a sorted frame: Spark groups those by where they lie.
    """
    count = min(_PARTITIONS_MAX, -(-total // _PARTITION_ROWS))
    return history.repartitionByRange(count, "history_id").sortWithinPartitions("history_id")


def _digest(*arguments: object) -> str:
    """A name for what was asked; the same arguments have the same name."""
    return hashlib.sha256(json.dumps(arguments).encode()).hexdigest()[:32]


def _is_done(options: Options, app: str) -> bool:
    try:
        found = ask(options, ForqClient.publication, app)
    except PublicationNotFound:
        return False
    return found.version >= _VERSION


def _chosen(history: DataFrame, outcomes: Sequence[str], ids: Sequence[str], where: str | None) -> DataFrame:
    if outcomes:
        history = history.where(f.col("outcome").isin(*outcomes))
    if ids:
        history = history.where(f.col("id").isin(*(each.lower() for each in ids)))
    return history if where is None else history.where(where)
