"""A redrive that is cut at any point loses and doubles nothing: crashes before and after each of its commits."""

import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path

import apsw
import trio

from forq_trio.model.limits import REDRIVE_PAGE_MAX
from forq_trio.storage.sqlite.files.check import check_file

from .workbench import DEAD, QUEUE, Workbench, open_workbench

MESSAGES = 2 * REDRIVE_PAGE_MAX + 10


class Crashes:
    """Copies the database and its log, as a crash would leave them, before and after each commit."""

    def __init__(self, database: Path, folder: Path) -> None:
        self._database = database
        self._folder = folder
        self.copies: list[Path] = []

    def __call__(self) -> None:
        copy = self._folder / f"crash-{len(self.copies)}.db"
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{self._database}{suffix}", f"{copy}{suffix}")
        self.copies.append(copy)


def moved_as_stored(database: Path) -> set[int]:
    """How many messages the task in this file has moved: they are in the queue, and no others are."""
    with closing(apsw.Connection(str(database))) as connection:
        (moved,) = {*connection.execute("SELECT json_extract(task, '$.moved') FROM redrives")} or {(0,)}
        assert connection.execute("SELECT count(*) FROM messages WHERE queue = ?", (QUEUE,)).get == moved[0]
    return {*moved}


async def where(bench: Workbench) -> Counter[tuple[str, str]]:
    """How often each message is in which queue."""
    return Counter([(queue, each) for queue in (DEAD, QUEUE) for each in await bench.ids(queue)])


async def test_after_a_crash_every_message_is_in_one_queue_once(url: str, tmp_path: Path) -> None:
    crashes = Crashes(tmp_path / "forq.db", tmp_path)
    async with open_workbench(url) as bench:
        ids = await bench.fail(*map(str, range(MESSAGES)))
        bench.engine.before_commit = bench.engine.after_answers = crashes
        task = await bench.redriven()
        bench.engine.before_commit = bench.engine.after_answers = lambda: None
        assert task.moved == MESSAGES
    moved = set()
    for copy in crashes.copies:
        moved |= moved_as_stored(copy)
        async with open_workbench(f"sqlite:///{copy}") as bench:
            for task in bench.broker.redrive_tasks.all():
                ended = await bench.broker.redrive_tasks.wait(task.id)
                assert ended.state == "done"
                assert (ended.searched, ended.matched, ended.moved, ended.skipped) == (*3 * (MESSAGES,), 0)
                assert await where(bench) == Counter([(QUEUE, each) for each in ids])
        assert check_file(str(copy)).problems == []
    # There was a crash at every point: before the first move, between any two, after the last.
    assert moved == {*range(0, MESSAGES, REDRIVE_PAGE_MAX), MESSAGES}


async def test_a_cancelled_caller_of_a_move_loses_nothing(bench: Workbench) -> None:
    ids = await bench.fail(*map(str, range(5)))
    with trio.CancelScope() as scope:
        bench.engine.before_commit = scope.cancel
        await bench.broker.redrive(DEAD, ids)
    assert scope.cancelled_caught
    bench.engine.before_commit = lambda: None
    assert Counter(await bench.ids(DEAD) + await bench.ids(QUEUE)) == Counter(ids)
