"""Checkpoints of another queue, consumer or server, of before a restore, and of an earlier version: readers called as
Spark calls them. No message is ever acknowledged that nobody has written, and what is refused says why.
"""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from forq_trio import ForqClient, NewMessage
from forq_trio.storage.sqlite.files.check import backup_file
from pyspark_forq.consume import ConsumeReader
from pyspark_forq.errors import ForqConsumerFenced, ForqDataSourceError
from pyspark_forq.lease_offsets import Offset
from spark.consuming import end_of_call_ahead, reader_of
from support.effort import count
from support.in_process import in_process_server
from support.real_server import SECRET

BATCH = 3
lake_reader = partial(reader_of, consumer="lake")


@dataclass
class Checkpoint:
    """The two logs of a query: the offsets that were planned, and how many batches were committed.

    The first offset is where the query began. home: the queue and consumer of its job.
    """

    offsets: list[Offset] = field(default_factory=list)
    committed: int = 0
    home: tuple[str, str] = ("q", "lake")

    def as_of_an_earlier_version(self) -> "Checkpoint":
        return replace(self, offsets=[{"seq": offset["seq"]} for offset in self.offsets])


Lake = dict[str, list[str]]
"""The contents of the files of each lease, as write_once writes them."""


def run(reader: ConsumeReader, of: Checkpoint, lake: Lake, steps: int, most: int = BATCH) -> None:
    """Run a query for so many steps, each of which may be its last: to plan, to write, to commit.

    Spark reads its logs from files, so an offset comes as new JSON. At the end nothing more is on its way to the
    server: the call that acknowledges and leases ahead has been answered.
    """

    def logged(index: int) -> Offset:
        return json.loads(json.dumps(of.offsets[index]))

    if not of.offsets:
        of.offsets.append(reader.initialOffset())
    for _ in range(steps):
        if len(of.offsets) == of.committed + 1:
            start = logged(-1)
            end = reader.latestOffset(start, ReadMaxRows(most))
            if end == start:
                return
            of.offsets.append(end)
        else:
            rows: Lake = {}
            for part in reader.partitions(logged(-2), logged(-1)):
                for batch in reader.read(part):
                    for row in batch.to_pylist():
                        rows.setdefault(row["lease"], []).append(row["content"])
            lake |= rows
            of.committed += 1
    end_of_call_ahead(reader)


class Timeline:
    """A server, its backups, and what it was sent. A restore goes back to a backup."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._files = 0
        self._server = ExitStack()
        self.sent: list[str] = []
        self._start(folder / "forq.db")

    def _start(self, database: Path) -> None:
        self._database = database
        self._server = self._stack.enter_context(ExitStack())
        self.url = self._server.enter_context(in_process_server(database=database))
        self.client = self._server.enter_context(closing(ForqClient(self.url, SECRET)))

    def send(self, queue: str, contents: list[str], priority: int = 100) -> None:
        self.client.produce_many(queue, [NewMessage(content, priority=priority) for content in contents])
        self.sent += contents

    def backup(self) -> tuple[Path, list[str]]:
        self._files += 1
        file = self._folder / f"backup-{self._files}.db"
        backup_file(str(self._database), str(file))
        return file, list(self.sent)

    def restore(self, backup: tuple[Path, list[str]]) -> None:
        self._server.close()
        self._files += 1
        restored = self._folder / f"forq-{self._files}.db"
        shutil.copyfile(backup[0], restored)
        self.sent = list(backup[1])
        self._start(restored)

    def stored(self, *queues: str) -> set[str]:
        return {
            message.content
            for queue in queues
            for message in self.client.export(queue, limit=10_000).messages
        }


@pytest.fixture
def timeline(tmp_path) -> Iterator[Timeline]:
    with ExitStack() as stack:
        yield Timeline(tmp_path, stack)


def numbered(name: str, times: int) -> list[str]:
    return [f"{name}{number}" for number in range(times)]


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(ForqDataSourceError) as raised:
        act()
    return str(raised.value)


def test_a_job_of_before_a_restore_acknowledges_nothing_of_the_job_after_it(timeline) -> None:
    """A scheduler tries it again, while the new one was killed before it had written its first batch."""
    timeline.send("q", numbered("m", 9))
    backup = timeline.backup()
    old, lake = Checkpoint(), {}
    run(lake_reader(timeline.url, "q"), old, lake, 2)  # lease 1 is written and logged, and not acknowledged
    timeline.restore(backup)
    new = Checkpoint()
    reader = lake_reader(timeline.url, "q")
    run(reader, new, {}, 1)
    assert new.offsets[-1]["seq"] == old.offsets[-1]["seq"] == 1
    reason = refused(lambda: run(lake_reader(timeline.url, "q"), old, lake, 9))
    assert "the checkpoint is at lease 1 of consumer 'lake' of 20" in reason
    assert "the server is another one, or the consumer was deleted since" in reason
    assert timeline.stored("q") == {*numbered("m", 9)}
    run(reader, new, lake, 99)  # the new job was not ended by the old one
    assert {content for rows in lake.values() for content in rows} == {*numbered("m", 9)}
    assert timeline.stored("q") == set()


def test_a_restore_is_told_from_another_server(timeline) -> None:
    """The backup has the consumer; what it leases again is another lease."""
    timeline.send("q", numbered("m", 9))
    old = Checkpoint()
    run(lake_reader(timeline.url, "q"), old, {}, 2, most=1)
    run(lake_reader(timeline.url, "q"), old, {}, 0)
    backup = timeline.backup()
    run(lake_reader(timeline.url, "q"), old, {}, 4, most=1)
    timeline.restore(backup)
    assert "the server was restored from a backup" in refused(
        lambda: run(lake_reader(timeline.url, "q"), old, {}, 1)
    )
    new = Checkpoint()
    run(lake_reader(timeline.url, "q"), new, {}, 5, most=1)
    for again in (old, Checkpoint(old.offsets, old.committed - 1)):
        reason = refused(lambda again=again: run(lake_reader(timeline.url, "q"), again, {}, 1))
        assert "made at" in reason
        assert "the server was restored from a backup" in reason


@pytest.mark.parametrize("steps", [0, 2, 3])
def test_a_checkpoint_of_another_queue_or_consumer_is_refused_by_name(timeline, steps) -> None:
    for queue in ("q", "other"):
        timeline.send(queue, numbered(queue, 9))
        run(lake_reader(timeline.url, queue), Checkpoint(), {}, 1)
    timeline.client.release_consumer("q", "lake")
    of = Checkpoint()
    run(lake_reader(timeline.url, "q"), of, {}, steps)
    before = timeline.client.consumer("other", "lake")
    assert (
        refused(lambda: run(lake_reader(timeline.url, "other"), of, {}, 1))
        == "the checkpoint is of queue 'q', and this query reads queue 'other': a checkpoint belongs to one queue"
        " and one consumer, so use another one"
    )
    assert "is of consumer 'lake', and this query reads consumer 'x'" in refused(
        lambda: run(reader_of(timeline.url, "q", "x"), of, {}, 1)
    )
    assert timeline.client.consumer("other", "lake") == before
    assert len(timeline.client.consumers("q")) == 1


def test_a_checkpoint_of_another_mode_is_refused(timeline) -> None:
    reason = refused(
        lambda: run(lake_reader(timeline.url, "q"), Checkpoint([{"after": 0, "until": 3}]), {}, 1)
    )
    assert reason == "the checkpoint is not one of mode 'consume': its offset is {'after': 0, 'until': 3}"


def test_of_an_earlier_version_what_is_acknowledged_goes_on(timeline) -> None:
    timeline.send("q", numbered("m", 9))
    of, lake = Checkpoint(), {}
    # Lease 1 is written; 2 is planned, so 1 is acknowledged soon.
    run(lake_reader(timeline.url, "q"), of, lake, 3)
    assert timeline.client.consumer("q", "lake").acknowledged == 1
    earlier = replace(of.as_of_an_earlier_version(), offsets=[{"seq": 0}, {"seq": 1}])
    run(lake_reader(timeline.url, "q"), earlier, lake, 99)
    assert sorted(content for rows in lake.values() for content in rows) == numbered("m", 9)
    assert timeline.stored("q") == set()
    run(lake_reader(timeline.url, "q"), earlier, lake, 9)


def test_of_an_earlier_version_a_batch_that_was_not_committed_is_refused(timeline) -> None:
    """After a restore lease 1 has other messages. A sink that has written the batch skips it, and lease 1 is lost."""
    timeline.send("q", numbered("m", 3))
    of = Checkpoint()
    backup = timeline.backup()
    run(lake_reader(timeline.url, "q"), of, {}, 1)
    timeline.restore(backup)
    timeline.send("q", numbered("before", 3), priority=1)
    reader, new, lake = lake_reader(timeline.url, "q"), Checkpoint(), {}
    run(reader, new, lake, 1)
    earlier = of.as_of_an_earlier_version()
    reason = refused(lambda: run(lake_reader(timeline.url, "q"), earlier, {}, 9))
    assert reason == (
        "the checkpoint has a batch that was not committed, and does not say when its lease 1 of consumer 'lake' was"
        " made: an earlier version wrote it, and the server's lease of that number may be another one. Let that"
        " version run once more, which commits the batch, or start with a new checkpoint"
    )
    run(reader, new, lake, 99)  # the new job was not ended by the old one
    assert sorted(content for rows in lake.values() for content in rows) == [
        *numbered("before", 3),
        *numbered("m", 3),
    ]
    assert timeline.stored("q") == set()


def test_of_an_earlier_version_a_lease_that_is_open_is_not_acknowledged(timeline) -> None:
    timeline.send("q", numbered("m", 9))
    of, lake = Checkpoint(), {}
    run(
        lake_reader(timeline.url, "q"), of, lake, 2
    )  # it may have written lease 1, or another queue's lease 1
    reason = refused(lambda: run(lake_reader(timeline.url, "q"), of.as_of_an_earlier_version(), {}, 1))
    assert "does not say which lease 1 of consumer 'lake' it has written" in reason
    assert "still has 6 messages" in reason  # with those of the lease ahead
    assert timeline.stored("q") == {*numbered("m", 9)}
    run(
        lake_reader(timeline.url, "q"), Checkpoint(), lake, 99
    )  # begins with the same lease, which replaces its files
    assert sorted(content for rows in lake.values() for content in rows) == numbered("m", 9)


def test_pages_are_of_the_lease_that_was_planned(timeline) -> None:
    """The server is restored while a batch is at work, and somebody else leases what the batch would read."""
    timeline.send("q", numbered("m", 9))
    backup = timeline.backup()
    of = Checkpoint()
    reader = lake_reader(timeline.url, "q")
    run(reader, of, {}, 1)
    (part,) = reader.partitions(of.offsets[0], of.offsets[1])
    timeline.restore(backup)
    run(lake_reader(timeline.url, "q"), Checkpoint(), {}, 1)
    assert "is another one" in refused(lambda: list(lake_reader(timeline.url, "q").read(part)))


def test_a_query_that_waited_for_another_one_begins_behind_what_that_one_acknowledged(timeline) -> None:
    timeline.send("q", numbered("m", 9))
    first, second = Checkpoint(), Checkpoint()
    lake: Lake = {}
    reader, waiting = lake_reader(timeline.url, "q"), lake_reader(timeline.url, "q")
    run(reader, first, lake, 1)
    run(waiting, second, lake, 0)
    assert second.offsets[0]["seq"] == 0
    run(reader, first, lake, 2)
    run(waiting, second, {}, 1)
    assert second.offsets[1]["seq"] == 2
    with pytest.raises(ForqConsumerFenced):
        run(reader, first, lake, 9)


class Jobs:
    """Random jobs with random checkpoints, their own and foreign ones, on a server that is restored now and then."""

    queues = ("a", "b")
    homes = (*[("a", "x")] * 6, ("a", "y"), ("b", "x"))

    def __init__(self, timeline: Timeline, rng: random.Random) -> None:
        self._timeline, self._rng = timeline, rng
        self._checkpoints: list[Checkpoint] = []
        self._lake: Lake = {}
        self._backups = [timeline.backup()]
        self._number = 0
        self.refused = 0

    def act(self) -> None:
        rng = self._rng
        deeds = {self._send: 2, self._run: 6, self._backup: 1, self._restore_and_try_again: 2}
        rng.choices([*deeds], [*deeds.values()])[0]()
        self.check()

    def _send(self) -> None:
        """Before or behind others, so that a number has other messages after a restore."""
        contents = numbered(f"{self._number}-", self._rng.randint(1, 2 * BATCH))
        self._number += 1
        queue, _ = self._rng.choice(self.homes)
        self._timeline.send(queue, contents, self._rng.randint(1, 200))

    def _backup(self) -> None:
        self._backups.append(self._timeline.backup())

    def _restore_and_try_again(self) -> None:
        """A new job counts about as far as an old one did, and then the scheduler tries the old one again."""
        self._timeline.restore(self._rng.choice([self._backups[0], *self._backups[-2:]]))
        self._send()
        if self._checkpoints:
            old = self._rng.choice(self._checkpoints[-6:])
            self._checkpoints.append(Checkpoint(home=old.home))
            self._try(self._checkpoints[-1], old.home, 2 * old.committed - self._rng.choice((0, 1, 1, 2)))
            self._try(old, old.home, self._rng.choice((1, 2, 3)))

    def _run(self) -> None:
        """A new process of a job, killed after some steps. Its checkpoint may be anybody's, and a copy.

        Most of them are where their checkpoint belongs, at least by its names.
        """
        rng = self._rng
        if rng.random() < 0.4 or not self._checkpoints:
            self._checkpoints.append(Checkpoint(home=rng.choice(self.homes)))
        of = rng.choice(self._checkpoints[-4:])
        if rng.random() < 0.2:
            of = of.as_of_an_earlier_version()
        if rng.random() < 0.2:
            of = replace(of, offsets=list(of.offsets))
            self._checkpoints.append(of)
        home = of.home if rng.random() < 0.8 else rng.choice(self.homes)
        self._try(of, home, rng.choice((0, 1, 1, 2, 2, 2, 3)))

    def _try(self, of: Checkpoint, home: tuple[str, str], steps: int) -> None:
        reader = reader_of(self._timeline.url, *home)
        try:
            run(reader, of, self._lake, steps)
        except ForqDataSourceError:
            self.refused += 1
        end_of_call_ahead(reader)
        reader.stop()

    def check(self) -> None:
        """What is not in a queue any more was written."""
        written = {content for rows in self._lake.values() for content in rows}
        gone = {*self._timeline.sent} - self._timeline.stored(*self.queues)
        assert gone <= written, f"acknowledged and in no file: {sorted(gone - written)}"

    def finish(self) -> None:
        """New checkpoints take all that is left."""
        for queue, consumer in {*self.homes}:
            run(reader_of(self._timeline.url, queue, consumer), Checkpoint(), self._lake, 999)
        assert self._timeline.stored(*self.queues) == set()
        self.check()


def test_nothing_is_acknowledged_that_nobody_wrote_whichever_checkpoints_are_used(tmp_path, rng) -> None:
    refusals = 0
    for trial in range(count("foreign_checkpoints")):
        folder = tmp_path / str(trial)
        folder.mkdir()
        with ExitStack() as stack:
            timeline = Timeline(folder, stack)
            for queue in Jobs.queues:
                timeline.send(queue, numbered(queue, 9 * BATCH))
            jobs = Jobs(timeline, rng)
            for _ in range(25):
                jobs.act()
            jobs.finish()
            refusals += jobs.refused
    assert refusals
