"""Lifecycle events and history: batch reads and streams."""

from itertools import chain

import pytest

from spark.queries import drained, stream, uncommit
from spark.support import Server, running

MODES = ["events", pytest.param("history", marks=pytest.mark.tier2)]


def log(spark, server: Server, mode: str, **options: object):
    return spark.read.format("forq").options(**server.options, mode=mode, **options).load()


def follow(spark, server: Server, mode: str, **options: object):
    return stream(spark, server.options | {"mode": mode, **options})


def finish(server: Server, queue: str, count: int) -> None:
    """Send messages that are received and acknowledged: three events each, and one line of history."""
    server.send(queue, [str(number) for number in range(count)])
    left = count
    while left:
        receipts = [each.receipt for each in server.client.receive(queue, max_messages=100, wait_ms=0)]
        server.client.ack(queue, receipts)
        left -= len(receipts)


def ids(rows) -> list[int]:
    return [row.id if "kind" in row else row.history_id for row in rows]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A server whose logs only these tests fill."""
    with running(tmp_path_factory.mktemp("alone") / "forq.db") as server:
        yield server


def test_the_life_of_a_message(spark, shared, queue) -> None:
    shared.send(queue, ["ä", "two"], group="g")
    first, second = shared.client.receive(queue, max_messages=2, wait_ms=0)
    shared.client.nack(queue, [second.receipt], delay_ms=0, reason="no")
    shared.client.ack(queue, [first.receipt])
    rows = log(spark, shared, "events", queue=queue).orderBy("id").collect()
    assert [(row.message_id, row.kind, row.attempt, row.reason, row.target) for row in rows] == [
        (first.id, "produced", 0, None, None),
        (second.id, "produced", 0, None, None),
        (first.id, "delivered", 1, None, None),
        (second.id, "delivered", 1, None, None),
        (second.id, "nacked", 1, "no", None),
        (first.id, "acked", 1, None, None),
    ]
    assert {(row.queue, row.sequence, row.bytes) for row in rows if row.message_id == first.id} == {
        (queue, first.sequence, 2)
    }
    assert all(row.at >= row.received_at for row in rows)
    assert [row.duration_ms is None for row in rows] == [True, True, False, False, False, False]
    some = {"startingOffsets": rows[1].id, "endingOffsets": rows[3].id}
    found = log(spark, shared, "events", queue=queue, **some).orderBy("id").collect()
    assert found == rows[1:4]


def test_the_history_of_a_queue(spark, shared, queue) -> None:
    shared.send(queue, ["ä", "two"], attributes={"k": "v"}, priority=4)
    (first,) = shared.client.receive(queue, max_messages=1, wait_ms=0)
    shared.client.ack(queue, [first.receipt])
    shared.client.purge(queue)
    rows = (
        log(spark, shared, "history", queue=queue, includeAttributes="true").orderBy("history_id").collect()
    )
    assert [(row.content, row.outcome, row.attempts, row.priority, row.attributes) for row in rows] == [
        ("ä", "acked", 1, 4, {"k": "v"}),
        ("two", "deleted", 0, 4, {"k": "v"}),
    ]
    assert rows[0].id == first.id
    assert all(row.finished_at >= row.received_at for row in rows)


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_has_everything_once_and_goes_on_where_it_was(spark, alone, tmp_path, mode) -> None:
    finish(alone, mode, 150)
    per_message = {"events": 3, "history": 1}[mode]
    options = {"queue": mode, "startingOffsets": "earliest"}
    all_of_it = log(spark, alone, mode, minPartitions=3).collect()
    limit = len(all_of_it) // 3 + 1
    batches = drained(follow(spark, alone, mode, **options, maxMessagesPerTrigger=limit), tmp_path)
    assert len(batches) == 3
    first = ids(chain(*batches))
    assert len(set(first)) == len(first) == 150 * per_message
    finish(alone, mode, 10)
    (later,) = drained(follow(spark, alone, mode, **options), tmp_path)
    assert len(later) == 10 * per_message
    assert min(ids(later)) > max(first)


@pytest.mark.tier2
def test_the_latest_is_where_the_query_began_first(spark, alone, tmp_path) -> None:
    """Although the latest has moved when its first batch is repeated."""
    latest = follow(spark, alone, "history", queue="latest", startingOffsets="latest")
    finish(alone, "latest", 2)
    assert drained(latest, tmp_path) == [[]]
    finish(alone, "latest", 3)
    uncommit(tmp_path, 0)
    nothing, later = drained(latest, tmp_path)
    assert nothing == []
    assert len(later) == 3
    uncommit(tmp_path, 1)
    finish(alone, "latest", 1)
    again, new = drained(latest, tmp_path)
    assert sorted(again) == sorted(later)
    assert len(new) == 1
