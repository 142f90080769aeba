"""Replay: finished messages, from an archive or the server's history, go into a queue again, as new messages; so do
dead letters, on request.

A replay has a name, of the caller's or made of what was asked, and is published under it in one transaction: asked
again, also after a kill at any moment, it does nothing. To replay the same messages once more, give another name.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from forq_trio.client.sync_pipelines import Pipelines
from forq_trio.model.errors import InvalidRequest, PublicationNotFound
from pyspark_forq.options import Options, parsed
from pyspark_forq.pipelines.archive import log_of
from pyspark_forq.pipelines.dead_letters import DEAD_LETTERED, with_dead_letters
from pyspark_forq.pipelines.results import ReplayResult, Show, show_nothing
from pyspark_forq.pipelines.stores import whole
from pyspark_forq.server import ask
from pyspark_forq.spark_conf import defaults_of

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
    dead_letters: bool = False,
    dry_run: bool = False,
    show: Show = show_nothing,
) -> ReplayResult:
    """Send the chosen messages to `queue`, in the order in which they finished, with content, priority, group and
    attributes.

    archive: where `archive` put them; None: the server's own history. source_queue, outcomes, ids: of these only;
    since, until: when they finished (ISO 8601), the second one excluded; where: an SQL expression over the columns of a
    history. name: under which it is done once; None: made of all these arguments. dead_letters: also what went from
    `source_queue` to its dead-letter queue, where it stays (see `with_dead_letters`). dry_run: count only. Raises
    InvalidRequest as `check_dead_letters` does.
    """
    check_dead_letters(dead_letters, archive, source_queue, outcomes)
    place = None if archive is None else whole(archive)
    more = ["dead letters"] if dead_letters else []
    asked = place, queue, source_queue, since, until, sorted(outcomes), sorted(ids), where, *more
    app = f"replay:{name or _digest(*asked)}"
    settings = {"url": url, "queue": queue, "txnAppId": app, "txnVersion": str(_VERSION)}
    if token is not None:
        settings["token"] = token
    options = parsed(settings, "write", defaults_of(spark))
    if not dry_run and _is_done(options, app):
        return ReplayResult(queue, app, {}, 0, True)
    if dead_letters and source_queue is not None:
        history = with_dead_letters(spark, source_queue, url=url, token=token, since=since, until=until)
    else:
        history = log_of(
            spark,
            "history",
            url=url,
            token=token,
            archive=place,
            queue=source_queue,
            since=since,
            until=until,
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
    order = ("finished_at", "sequence") if dead_letters else ("history_id",)
    writer = in_order(chosen, total, order).select(*columns).write.format("forq")
    writer.options(**settings).mode("append").save()
    show(total, total, "published")
    return ReplayResult(queue, app, matched, total, False)


def check_dead_letters(
    dead_letters: bool, archive: str | Path | None, source_queue: str | None, outcomes: Sequence[str]
) -> None:
    """Raises InvalidRequest where dead letters are asked for and not of one queue of a server, or the outcome of dead
    letters without them."""
    if dead_letters and archive is not None:
        raise InvalidRequest(
            "dead letters are read from the server, not from an archive: leave one of the two out"
        )
    if dead_letters and source_queue is None:
        raise InvalidRequest("whose dead letters? name the queue that they come from")
    if DEAD_LETTERED in outcomes and not dead_letters:
        raise InvalidRequest(f"the outcome {DEAD_LETTERED} is of dead letters, which were not asked for")


def in_order(history: DataFrame, total: int, columns: Sequence[str] = ("history_id",)) -> DataFrame:
    """Its `total` rows by these columns, within partitions and from each to the next: so the sink publishes them.

    To coalesce a sorted frame would not do: Spark may group its partitions by machine, not in their order.
    """
    count = min(_PARTITIONS_MAX, -(-total // _PARTITION_ROWS))
    return history.repartitionByRange(count, *columns).sortWithinPartitions(*columns)


def _digest(*arguments: object) -> str:
    """A name made of the arguments; the same arguments give the same name."""
    return hashlib.sha256(json.dumps(arguments).encode()).hexdigest()[:32]


def _is_done(options: Options, app: str) -> bool:
    try:
        found = ask(options, Pipelines.publication, app)
    except PublicationNotFound:
        return False
    return found.version >= _VERSION


def _chosen(history: DataFrame, outcomes: Sequence[str], ids: Sequence[str], where: str | None) -> DataFrame:
    if outcomes:
        history = history.where(f.col("outcome").isin(*outcomes))
    if ids:
        history = history.where(f.col("id").isin(*(each.lower() for each in ids)))
    return history if where is None else history.where(where)
