"""Finished messages go into a queue again, once."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")

from pyspark.sql import functions as f

from forq_trio.model.errors import InvalidRequest
from pyspark_forq.logs import bounds
from pyspark_forq.pipelines import dead_letters
from pyspark_forq.pipelines.archive import archive
from pyspark_forq.pipelines.replay import in_order, replay
from spark.support import Server, running
from support.sqs_messages import ATTRIBUTES, receive_all, sqs_client


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


@pytest.mark.tier2
def test_messages_from_amazon_sqs_are_replayed_with_their_types(spark, server) -> None:
    attributes = {name: ATTRIBUTES[name] for name in ("price", "seal")}
    with sqs_client(server.url) as sqs:
        url = sqs.create_queue(QueueName="amazon")["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=attributes, MessageGroupId="g1")
        (message,) = receive_all(sqs, url)
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        assert replay(spark, "amazon", **server.options, source_queue="amazon").published == 1
        (again,) = receive_all(sqs, url)
    assert again["MessageAttributes"] == attributes
    assert again["Attributes"]["MessageGroupId"] == "g1"


@pytest.mark.tier2
def test_an_archive_is_replayed_by_ids_and_outcome(spark, server, tmp_path) -> None:
    ids = finish(server, "kept", ["x", "y", "z"])
    done = archive(spark, tmp_path, **server.options, queue="kept", tables=["history"])
    assert done.rows == {"history": 3}
    with pytest.raises(InvalidRequest, match="queue kept, not any queue"):
        archive(spark, tmp_path, **server.options, tables=["history"])
    asked = dict(server.options, archive=tmp_path)
    assert replay(spark, "from-archive", **asked, ids=ids[1:], outcomes=["acked"]).published == 2
    assert len(server.contents("from-archive")) == 2


def die(server: Server, queue: str, contents: list[str]) -> list[str]:
    """Send messages that become dead letters at their first failure; their ids."""
    server.send(queue, contents, attributes={"kind": "ä"}, group="g", max_attempts=1)
    ids = []
    for _ in contents:
        (message,) = server.client.receive(queue)
        server.client.nack(queue, message.receipt, reason="no stock")
        ids.append(message.id)
    return ids


def ack_one(server: Server, queue: str) -> None:
    (message,) = server.client.receive(queue)
    server.client.ack(queue, message.receipt)


def test_dead_letters_are_replayed_once_and_stay_where_they_are(spark, server) -> None:
    """Those that wait, and those that ended in the dead-letter queue; of this queue only."""
    finish(server, "shop", ["done"])
    server.client.configure("other", dead_letter_queue="shop-dlq")
    die(server, "other", ["other's"])
    die(server, "shop", ["ended", "back", "waits"])
    assert len(server.contents("shop-dlq")) == 4
    (others,) = server.client.receive("shop-dlq")
    ack_one(server, "shop-dlq")  # "ended"
    (back,) = (message for message in server.messages("shop-dlq") if message.content == "back")
    server.client.redrive("shop-dlq", [back.id])
    ack_one(server, "shop")  # "back", after its redrive
    server.client.release("shop-dlq", others.receipt)
    asked = dict(server.options, source_queue="shop")
    assert replay(spark, "without", **asked).matched == {"shop": 2}
    counted = replay(spark, "shop-again", **asked, dead_letters=True, dry_run=True)
    assert (counted.matched, counted.published) == ({"shop": 2, "shop-dlq": 2}, 0)
    assert replay(spark, "shop-again", **asked, dead_letters=True).published == 4
    assert replay(spark, "shop-again", **asked, dead_letters=True).already_done
    again = list(server.messages("shop-again"))
    assert [message.content for message in again] == ["done", "ended", "waits", "back"]
    assert (again[2].attributes, again[2].group, again[2].attempts) == ({"kind": "ä"}, "g", 0)
    assert [message.content for message in server.messages("shop-dlq")] == ["other's", "waits"]


@pytest.mark.tier2
def test_dead_letters_are_chosen_as_others_are(spark, server) -> None:
    """By outcome, id, expression, and the time at which they moved."""
    first, second = die(server, "store", ["one", "two"])
    ack_one(server, "store-dlq")  # "one"
    moment = server.client.dead_letter("store-dlq", second).dead_lettered_at
    moved = datetime.fromtimestamp(moment / 1000, UTC).isoformat()
    asked = dict(server.options, source_queue="store", dead_letters=True, dry_run=True)
    ask = lambda **chosen: replay(spark, "again", **asked, **chosen).matched.get("store-dlq", 0)  # noqa: E731
    assert ask(outcomes=["dead_lettered"], where="reason = 'max_attempts_reached' AND attempts = 1") == 2
    assert ask(outcomes=["acked"]) == 0
    assert ask(ids=[first], where="dead_letter_outcome = 'acked'") == 1
    assert ask(ids=[second], where="dead_letter_outcome IS NULL", since=moved) == 1
    assert ask(ids=[second], until=moved) == 0


@pytest.mark.tier2
def test_a_dead_letter_that_ends_during_the_read_is_there_once(spark, server, monkeypatch) -> None:
    """It is in what was read of the queue, and in the history that is read then."""
    die(server, "busy", ["ends", "back", "waits"])
    asked = dict(server.options, source_queue="busy", dead_letters=True)
    looks = 0

    def bounds_and_ends(options):
        nonlocal looks
        looks += 1
        if looks == 2:
            ack_one(server, "busy-dlq")  # "ends"
            (back,) = (message for message in server.messages("busy-dlq") if message.content == "back")
            server.client.redrive("busy-dlq", [back.id])
            ack_one(server, "busy")  # "back"
        return bounds(options)

    monkeypatch.setattr(dead_letters, "bounds", bounds_and_ends)
    assert replay(spark, "later", **asked).matched == {"busy": 1, "busy-dlq": 2}
    assert server.contents("later") == ["ends", "waits", "back"]


def test_dead_letters_are_of_one_queue_of_a_server(spark, server, tmp_path) -> None:
    server.client.configure("loses", dead_letter_queue="")
    for chosen, words in (
        ({"dead_letters": True}, "name the queue that they come from"),
        ({"dead_letters": True, "source_queue": "q", "archive": tmp_path}, "not from an archive"),
        ({"dead_letters": True, "source_queue": "loses"}, "loses has no dead-letter queue"),
        ({"outcomes": ["dead_lettered"]}, "which were not asked for"),
    ):
        with pytest.raises(InvalidRequest, match=words):
            replay(spark, "again", **server.options, **chosen)


def test_many_partitions_are_in_order(spark) -> None:
    """The sink publishes partition after partition."""
    history = spark.range(2_000, numPartitions=5).selectExpr("id * 7919 % 2000 as history_id")
    rows = in_order(history, 10**9).select("history_id", f.spark_partition_id().alias("partition")).collect()
    assert [row.history_id for row in rows] == list(range(2_000))
    assert [row.partition for row in rows] == sorted(row.partition for row in rows)
    assert rows[-1].partition == 63
