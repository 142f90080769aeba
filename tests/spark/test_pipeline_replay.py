"""Finished messages go into a queue again, once."""

from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")

from pyspark.sql import functions as f

from forq_trio.model.errors import InvalidRequest
from pyspark_forq.pipelines.archive import archive
from pyspark_forq.pipelines.replay import in_order, replay
from spark.support import Server, running


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("history") / "forq.db", FORQ_HISTORY="on") as server:
        yield server


def finish(server: Server, queue: str, contents: list[str]) -> list[str]:
    """Send messages with attributes and ack them; their ids."""
    server.send(queue, contents, attributes={"kind": "ä"}, priority=7)
    found = server.client.receive(queue, max_messages=len(contents))
    server.client.ack(queue, [message.receipt for message in found])
    return [message.id for message in found]


def test_history_goes_into_a_queue_once_with_what_belongs_to_it(spark, server) -> None:
    finish(server, "done", ["a", "b", "c"])
    asked = dict(server.options, source_queue="done", where="content <> 'b'")
    first = replay(spark, "again", **asked)
    assert (first.published, first.already_done) == (2, False)
    second = replay(spark, "again", **asked)
    assert (second.published, second.already_done) == (0, True)
    messages = list(server.messages("again"))
    assert [message.content for message in messages] == ["a", "c"]
    assert messages[0].attributes == {"kind": "ä"}
    assert messages[0].priority == 7
    named = replay(spark, "again", **asked, name="once-more", dry_run=True)
    assert (named.app, named.matched) == ("replay:once-more", {"done": 2})
    assert first.app != named.app


def test_an_archive_is_replayed_by_ids_and_outcome(spark, server, tmp_path) -> None:
    ids = finish(server, "kept", ["x", "y", "z"])
    done = archive(spark, tmp_path, **server.options, queue="kept", tables=["history"])
    assert done.rows == {"history": 3}
    with pytest.raises(InvalidRequest, match="queue kept, not unset"):
        archive(spark, tmp_path, **server.options, tables=["history"])
    asked = dict(server.options, archive=tmp_path)
    assert replay(spark, "from-archive", **asked, ids=ids[1:], outcomes=["acked"]).published == 2
    assert len(server.contents("from-archive")) == 2


def test_many_partitions_are_in_order(spark) -> None:
    """The sink publishes partition after partition."""
    history = spark.range(2_000, numPartitions=5).selectExpr("id * 7919 % 2000 as history_id")
    rows = in_order(history, 10**9).select("history_id", f.spark_partition_id().alias("partition")).collect()
    assert [row.history_id for row in rows] == list(range(2_000))
    assert [row.partition for row in rows] == sorted(row.partition for row in rows)
    assert rows[-1].partition == 63
