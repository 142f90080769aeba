"""Readers called as Spark calls them, without Spark: what they do about leases and records that are gone."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadMaxRows

from forq_trio import ForqClient
from forq_trio.model.clock import SystemClock
from forq_trio.model.commands import TrimEvents, TrimHistory
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import SQLITE_PREFIX, open_engine
from forq_trio.system import open_system
from pyspark_forq.consume import ConsumeReader
from pyspark_forq.errors import ForqDataLoss, ForqDataSourceError
from pyspark_forq.log_streams import LogStreamReader
from pyspark_forq.logs import LogReader
from pyspark_forq.options import parsed
from pyspark_forq.ranges import Range
from pyspark_forq.schemas import schema_of
from pyspark_forq.source import ForqDataSource
from support.in_process import in_process_server
from support.real_server import SECRET

GONE, KEPT = 20, 5
"""Events and finished messages of the server of `trimmed`: ids 1 to GONE are gone, KEPT more are there."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with in_process_server(events=True) as url:
        yield url


@pytest.fixture(scope="module")
def client(url) -> Iterator[ForqClient]:
    with ForqClient(url, SECRET) as client:
        yield client


async def fill_and_trim(database: Path) -> None:
    engine = open_engine(f"{SQLITE_PREFIX}{database}", EngineSettings(events=True, history=True), "normal")
    async with open_system(engine, SystemClock()) as system:
        for count in (GONE, KEPT):
            for _ in range(count):
                await system.broker.produce("q", "content")
            await system.broker.purge("q")
            if count == GONE:
                await system.writer.execute(TrimEvents(2**52, 0))
                await system.writer.execute(TrimHistory(2**52, 0))


@pytest.fixture(scope="module")
def trimmed(tmp_path_factory) -> Iterator[str]:
    """A server that has not kept the beginnings of its logs."""
    database = tmp_path_factory.mktemp("trimmed") / "forq.db"
    trio.run(fill_and_trim, database)
    with in_process_server(database=database, events=True) as url:
        yield url


def made(kind: type, url: str, use: str, **options: str):
    """A reader as Spark makes it."""
    given = parsed({"url": url, "token": SECRET, **options}, use)
    return kind(given, schema_of(given))


def rows(reader, *partitions) -> int:
    return sum(batch.num_rows for partition in partitions for batch in reader.read(partition))


def consumer(url: str, queue: str, **options: str) -> ConsumeReader:
    return made(ConsumeReader, url, "stream", queue=queue, consumer="spark", **options)


def test_a_consumer_counts_as_used_while_its_batch_is_at_work(url, client, queue, monkeypatch) -> None:
    monkeypatch.setattr("pyspark_forq.heartbeat.HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr("forq_trio.model.limits.CONSUMER_USE_SAVE_MS", 0)
    client.produce(queue, "one")
    reader = consumer(url, queue)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(1))
    partitions = reader.partitions(start, end)
    thread = reader._heartbeat._thread
    assert thread is not None
    used_at = client.consumer(queue, "spark").used_at
    while client.consumer(queue, "spark").used_at <= used_at:
        assert thread.is_alive()
    assert rows(pickle.loads(pickle.dumps(reader)), *partitions) == 1  # as a task reads it
    client.release_consumer(queue, "spark")
    used_at = client.consumer(queue, "spark").used_at
    while client.consumer(queue, "spark").used_at <= used_at:
        assert thread.is_alive()  # what is gone is told to the query's next request, not here
    reader.stop()
    thread.join()


@pytest.mark.parametrize("lossy", ["true", "false"])
def test_a_batch_that_is_repeated_never_makes_its_lease(url, client, queue, lossy) -> None:
    """The server was restored from a backup: what it leased now was not in that batch."""
    client.produce(queue, "new")
    reader = consumer(url, queue, failOnDataLoss=lossy)
    with pytest.raises(
        ForqDataSourceError, match="at lease 1 of consumer 'spark', and the server's newest is 0"
    ):
        reader.partitions({"seq": 0}, {"seq": 1, "madeAt": 1})
    assert client.consumer(queue, "spark").leased == 0
    end = reader.latestOffset({"seq": 0}, ReadMaxRows(10))
    assert end["seq"] == 1
    again = consumer(url, queue)
    assert rows(again, *again.partitions({"seq": 0}, end)) == 1


def test_a_lease_that_is_given_back_while_it_is_read(url, client, queue) -> None:
    client.produce(queue, "one")
    reader, lenient = consumer(url, queue), consumer(url, queue, failOnDataLoss="false")
    pages = reader.partitions({"seq": 0}, reader.latestOffset({"seq": 0}, ReadMaxRows(10)))
    client.release_consumer(queue, "spark")
    advice = "with failOnDataLoss=false its batch is taken as empty$"
    with pytest.raises(ForqDataLoss, match=rf"lease 1 .* is gone.*; {advice}"):
        rows(reader, *pages)
    assert rows(lenient, *pages) == 0


@pytest.mark.parametrize("end_lease", [ForqClient.release_consumer, ForqClient.delete_consumer])
def test_a_lease_that_was_given_back_cannot_be_repeated(url, client, queue, end_lease) -> None:
    """Nor acknowledged; where that is allowed its batch is empty, and its messages come again."""
    client.produce(queue, "one")
    lost = consumer(url, queue).latestOffset({"seq": 0}, ReadMaxRows(10))
    end_lease(client, queue, "spark")
    strict = consumer(url, queue)
    with pytest.raises(ForqDataLoss, match=r"lease 1 of consumer 'spark' .* is gone"):
        strict.partitions({"seq": 0}, lost)
    with pytest.raises(ForqDataLoss, match="lease 1 of consumer 'spark' was given back after its batch"):
        strict.latestOffset(lost, ReadMaxRows(10))
    lenient = consumer(url, queue, failOnDataLoss="false")
    assert lenient.partitions({"seq": 0}, lost) == []
    end = lenient.latestOffset(lost, ReadMaxRows(10))
    assert end["seq"] == 2
    assert rows(lenient, *lenient.partitions(lost, end)) == 1


def test_a_lease_that_no_batch_had_is_left_out_when_it_is_given_back(url, client, queue) -> None:
    client.produce(queue, "one")
    consumer(url, queue).latestOffset({"seq": 0}, ReadMaxRows(10))
    client.release_consumer(queue, "spark")
    assert consumer(url, queue).latestOffset({"seq": 0}, ReadMaxRows(10))["seq"] == 2


def test_an_older_checkpoint_has_the_leases_that_are_kept(url, client, queue) -> None:
    reader = consumer(url, queue)
    offsets = [reader.initialOffset()]
    for number in range(6):
        client.produce(queue, str(number))
        offsets.append(reader.latestOffset(offsets[number], ReadMaxRows(1)))
    assert [offset["seq"] for offset in offsets] == list(range(7))
    assert reader.latestOffset(offsets[6], ReadMaxRows(1)) == offsets[6]
    assert consumer(url, queue).latestOffset(offsets[4], ReadMaxRows(1)) == offsets[5]
    with pytest.raises(ForqDataLoss, match="has acknowledged lease 2 long ago and is at 6"):
        consumer(url, queue).latestOffset(offsets[1], ReadMaxRows(1))
    lenient = consumer(url, queue, failOnDataLoss="false")
    assert lenient.latestOffset(offsets[1], ReadMaxRows(1)) == offsets[4]


def test_a_checkpoint_that_is_ahead_of_its_consumer_is_refused(url, client, queue) -> None:
    with pytest.raises(ForqDataSourceError, match="Start with a new checkpoint"):
        consumer(url, queue).latestOffset({"seq": 3}, ReadMaxRows(1))


def test_a_stream_that_cannot_be_says_so_in_its_first_call(url) -> None:
    """Spark shows what is raised there, and hides what streamReader raises."""
    given = CaseInsensitiveDict({"url": url, "token": SECRET, "queue": "q"})
    refused = ForqDataSource(given).streamReader(schema_of(parsed(given, "read")))
    for call in (refused.initialOffset, refused.getDefaultReadLimit):
        with pytest.raises(ForqDataSourceError, match="option 'consumer' has to name who reads"):
            call()


def test_a_log_that_ends_before_the_checkpoint_is_another(url) -> None:
    with ForqClient(url, SECRET) as client:
        last = client.event_range().last
    strict, lenient = (
        made(LogStreamReader, url, "stream", mode="events", failOnDataLoss=fail) for fail in ("true", "false")
    )
    ahead = {"after": last, "until": last + 9}
    with pytest.raises(ForqDataLoss, match=f"the checkpoint is at .* and the server's events end at {last}"):
        strict.latestOffset(ahead, ReadMaxRows(10**6))
    assert lenient.latestOffset(ahead, ReadMaxRows(10**6)) == {"after": 0, "until": last}


@pytest.mark.parametrize("mode", ["events", "history"])
def test_the_first_range_of_a_log_does_not_skip_what_went_meanwhile(trimmed, mode) -> None:
    """As when it is planned, the server's retention comes by, and then it is read, or read again."""
    first = made(LogReader, trimmed, "read", mode=mode).partitions()[0].after + 1
    assert first > GONE
    for kind, use in ((LogReader, "read"), (LogStreamReader, "stream")):
        strict, lenient = (
            made(kind, trimmed, use, mode=mode, failOnDataLoss=fail) for fail in ("true", "false")
        )
        for after in (0, 1):
            for until in (after + 1, first + 1):
                with pytest.raises(ForqDataLoss, match=rf"{mode} {after + 1} to {first - 1} are gone"):
                    rows(strict, Range(after, until))
            assert rows(lenient, Range(after, after + 1)) == 0
            assert rows(lenient, Range(after, first + 1)) == 2
        assert rows(strict, Range(first - 1, first + 1)) == 2


@pytest.mark.parametrize("mode", ["events", "history"])
def test_the_first_id_is_not_the_earliest_that_there_is(trimmed, mode) -> None:
    """A stream from id 1 misses what is gone, as a batch does; only "earliest" is content with what there is."""
    asked = {"mode": mode, "startingOffsets": "1"}
    with pytest.raises(ForqDataLoss, match=f"{mode} 1 to"):
        made(LogReader, trimmed, "read", **asked).partitions()
    stream = made(LogStreamReader, trimmed, "stream", **asked)
    with pytest.raises(ForqDataLoss, match=f"{mode} 1 to"):
        stream.latestOffset(stream.initialOffset(), ReadMaxRows(10))
    lenient = made(LogStreamReader, trimmed, "stream", **asked, failOnDataLoss="false")
    earliest = made(LogStreamReader, trimmed, "stream", mode=mode, startingOffsets="earliest")
    found = earliest.latestOffset(earliest.initialOffset(), ReadMaxRows(10))
    assert lenient.latestOffset(lenient.initialOffset(), ReadMaxRows(10)) == found
    assert found["after"] >= GONE
    assert rows(earliest, *earliest.partitions(earliest.initialOffset(), found)) > 0
