"""Leases made ahead: what the server is asked for while Spark works on a batch, called as Spark calls it."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from forq_trio import ForqClient
from forq_trio.model.errors import ForqUnreachable
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.sqlite.files.check import backup_file
from pyspark_forq.errors import ForqDataLoss, ForqDataSourceError
from pyspark_forq.lease_offsets import Offset
from spark.consuming import end_of_call_ahead, reader_of
from support.in_process import in_process_server
from support.real_server import SECRET


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with in_process_server() as url:
        yield url


@pytest.fixture(scope="module")
def client(url) -> Iterator[ForqClient]:
    with ForqClient(url, SECRET) as client:
        yield client


class Query:
    """Spark's side of a stream: one batch after the other; what a batch had is written when it is committed."""

    def __init__(self, url: str, queue: str, most: int, start: Offset | None = None) -> None:
        self.reader = reader_of(url, queue, "spark")
        self.most = ReadMaxRows(most)
        self.start = self.reader.initialOffset() if start is None else start

    def plan(self) -> Offset:
        return self.reader.latestOffset(self.start, self.most)

    def read(self, end: Offset) -> list[str]:
        return [
            row["content"]
            for part in self.reader.partitions(self.start, end)
            for batch in self.reader.read(part)
            for row in batch.to_pylist()
        ]

    def batch(self) -> list[str]:
        """Plan, read and commit one; empty when there was nothing."""
        end = self.plan()
        if end == self.start:
            return []
        rows = self.read(end)
        self.start = end
        return rows

    def made_ahead(self) -> None:
        """Wait for the call that is under way."""
        end_of_call_ahead(self.reader)


@pytest.fixture
def filled(client, queue) -> list[str]:
    contents = [f"m{number}" for number in range(10)]
    client.produce_many(queue, [NewMessage(content) for content in contents])
    return contents


def test_the_next_batch_is_leased_while_one_is_at_work(url, client, queue, filled) -> None:
    query = Query(url, queue, 4)
    end = query.plan()
    query.made_ahead()
    info = client.consumer(queue, "spark")
    assert (end["seq"], info.leased, info.acknowledged, info.open_messages) == (1, 2, 0, 8)
    assert query.read(end) == filled[:4]
    query.start = end
    end = query.plan()
    assert end["seq"] == 2
    query.made_ahead()
    assert client.consumer(queue, "spark").acknowledged == 1
    assert query.read(end) == filled[4:8]


def test_a_drain_has_every_message_once_and_leaves_nothing(url, client, queue, filled) -> None:
    query = Query(url, queue, 3)
    found = [query.batch() for _ in range(5)]
    assert found == [filled[:3], filled[3:6], filled[6:9], filled[9:], []]
    info = client.consumer(queue, "spark")
    assert (info.acknowledged, info.open_messages, client.queue_stats(queue).processing) == (4, 0, 0)


def test_the_last_batch_is_acknowledged_also_when_it_is_full(url, client, queue, filled) -> None:
    query = Query(url, queue, 5)
    assert [query.batch() for _ in range(3)] == [filled[:5], filled[5:], []]
    info = client.consumer(queue, "spark")
    assert (info.acknowledged, info.open_messages, client.queue_stats(queue).processing) == (2, 0, 0)


def test_one_that_is_not_full_gets_what_came_meanwhile(url, client, queue, filled) -> None:
    query = Query(url, queue, 8)
    assert query.batch() == filled[:8]
    query.made_ahead()
    client.produce(queue, "later")
    assert query.batch() == [*filled[8:], "later"]
    assert query.batch() == []


def test_a_batch_that_is_not_full_has_none_ahead(url, client, queue, filled) -> None:
    query = Query(url, queue, 100)
    query.plan()
    assert query.reader._ahead._thread is None


def test_a_query_that_ends_by_itself_leases_no_more_than_there_was(url, client, queue, filled) -> None:
    query = Query(url, queue, 4)
    query.reader.prepareForTriggerAvailableNow()
    found = query.batch()
    client.produce_many(queue, [NewMessage("later")] * 9)
    while rows := query.batch():
        found += rows
    assert found == filled
    assert client.queue_stats(queue).ready == 9


def test_what_is_written_is_acknowledged_also_while_the_last_batch_is_at_work(
    url, client, queue, filled
) -> None:
    query = Query(url, queue, 6)
    query.reader.prepareForTriggerAvailableNow()
    assert query.batch() == filled[:6]
    end = query.plan()
    query.made_ahead()
    assert client.consumer(queue, "spark").acknowledged == 1
    assert query.read(end) == filled[6:]


@pytest.mark.parametrize("at_work", [0, 1, 2])
def test_a_query_that_was_killed_goes_on_with_its_batch(url, client, queue, filled, at_work) -> None:
    """Whatever was leased ahead, and whether or not the batch before was acknowledged."""
    query = Query(url, queue, 3)
    found = [query.batch() for _ in range(at_work)]
    end = query.plan()
    query.made_ahead()
    again = Query(url, queue, 3, query.start)
    found.append(again.read(end))
    again.start = end
    while rows := again.batch():
        found.append(rows)
    assert [row for rows in found for row in rows] == filled
    assert client.queue_stats(queue).processing == 0


def test_without_its_last_commit_a_query_reads_the_same_batch(url, client, queue, filled) -> None:
    query = Query(url, queue, 3)
    end = query.plan()
    query.made_ahead()
    first = query.read(end)
    again = Query(url, queue, 3, query.start)
    assert again.plan() == end
    assert again.read(end) == first


def test_what_was_given_back_meanwhile_is_told(url, client, queue, filled) -> None:
    query = Query(url, queue, 3)
    query.batch()
    query.made_ahead()
    client.release_consumer(queue, "spark")
    with pytest.raises(Exception, match="released it") as raised:
        query.batch()
    assert not isinstance(raised.value, ForqDataLoss)
    again = Query(url, queue, 3, query.start)
    with pytest.raises(ForqDataLoss, match="given back"):
        again.batch()


def test_what_the_call_ahead_could_not_do_the_next_question_does(
    url, client, queue, filled, monkeypatch
) -> None:
    query = Query(url, queue, 4)
    asked = []

    def fails(*arguments: Any) -> None:
        asked.append((arguments[0].number, *arguments[1:]))
        raise ForqUnreachable("no answer", sent=False)

    monkeypatch.setattr(query.reader, "_make_ahead", fails)
    found = [query.batch() for _ in range(4)]
    assert found == [filled[:4], filled[4:8], filled[8:], []]
    assert asked == [(0, 2, 4), (1, 3, 4)]
    assert client.consumer(queue, "spark").acknowledged == 3


def test_a_server_restored_from_a_backup_with_two_leases_goes_on_or_says_so(tmp_path) -> None:
    """It has one lease that is open and one ahead; what it never leased is not taken for its own."""
    database, backup = tmp_path / "forq.db", tmp_path / "backup.db"
    contents = [f"m{number}" for number in range(10)]
    with in_process_server(database=database) as url, ForqClient(url, SECRET) as client:
        client.produce_many("q", [NewMessage(content) for content in contents])
        query = Query(url, "q", 3)
        found = query.batch()
        query.made_ahead()
        backup_file(str(database), str(backup))
        found += query.batch()
        query.made_ahead()
        second = query.start
        query.batch()
    assert found == contents[:6]
    with in_process_server(database=backup) as url, ForqClient(url, SECRET) as client:
        info = client.consumer("q", "spark")
        assert (info.leased, info.acknowledged, info.open_messages) == (2, 0, 6)
        with pytest.raises(ForqDataSourceError, match="restored from a backup"):
            Query(url, "q", 3, query.start).batch()
        again = Query(url, "q", 3, second)
        while rows := again.batch():
            found += rows
        assert client.queue_stats("q").total == 0
    assert found == contents
