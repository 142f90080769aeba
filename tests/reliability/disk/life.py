"""One fixed life of the SQLite engine on a faulty disk, and what has to hold whatever fails in it.

After each step, failed or not, the file is what a crash at that moment would leave: it is copied and looked at with a
disk that works. It holds what was committed; of a step whose outcome is unknown, all or nothing.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import apsw

from forq_trio.model.commands import (
    Ack,
    Claim,
    Command,
    Configure,
    Extend,
    Nack,
    Produce,
    ProduceMany,
    Sweep,
    SweepKind,
)
from forq_trio.model.errors import StorageOpenError, StorageUnavailable
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, Receipt
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import Batch, EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.check import backup_file
from reliability.disk.faulty import FaultyDisk
from reliability.power_cut.history import T0, State, seen_by, stored

SETTINGS = EngineSettings(queue_ttl_ms=60_000, dlq_ttl_ms=90_000, attempts_max=2, backoff_ms=(500,))
QUEUE = "emails"
NOTHING: State = frozenset()
"""What a file holds that no engine has opened yet."""


class Unknown(Exception):
    """A commit failed and nobody knows what is on disk: the writer ends its process here."""


class Life:
    """state: what is committed. refusals: how often a step was refused and done again; unknown: how many commits left
    nobody knowing."""

    def __init__(self, disk: FaultyDisk, directory: Path) -> None:
        self._disk = disk
        self._directory = directory
        self._path = directory / "forq.db"
        self._engine: SqliteEngine | None = None
        self._held: list[Delivery] = []
        self._now_ms = T0
        self.state = NOTHING
        self._maybe = NOTHING
        self.refusals = 0
        self.unknown = 0

    def run(self) -> None:
        """Go through all steps; the disk is healed after a step that it refused, and the step is done again."""
        for step in (
            self._open,
            lambda: self._batch(
                ProduceMany(QUEUE, tuple(NewMessage(size * "x") for size in (5, 900, 9_000)))
            ),
            lambda: self._batch(Produce(QUEUE, NewMessage("later", delay_ms=300)), Claim(QUEUE, 3, 40)),
            lambda: self._batch(Configure(QUEUE, SettingsChange(max_messages=50)), *self._settling()),
            self._read,
            lambda: self._checkpoint(truncate=False),
            lambda: self._batch(Claim(QUEUE, 2, 60_000), Produce("jobs_lifo", NewMessage("y" * 3_000))),
            lambda: self._checkpoint(truncate=True),
            lambda: self._batch(*self._settling(), *map(Sweep, SweepKind)),
            self._back_up,
            self._reopen,
            lambda: self._batch(Claim(QUEUE, 2, 60_000), after_ms=1_000),
            lambda: self._batch(*self._settling()),
            self._close,
        ):
            self._until_done(step)

    def _until_done(self, step: Callable[[], None]) -> None:
        for _ in range(3):
            try:
                step()
            except (StorageUnavailable, StorageOpenError):
                self.refusals += 1
                self._look({self.state})
                self._disk.heal()
            except Unknown:
                self.unknown += 1
                self._disk.heal()
                self._start_again()
                return
            else:
                self._look({self.state})
                return
        raise AssertionError("a disk that works refuses to")

    def _open(self) -> None:
        engine = SqliteEngine(str(self._path), SETTINGS)
        self._engine = engine
        with self._disk.asleep():
            found = stored(self._path)
        assert found == self.state
        self._check_counts()

    def _close(self) -> None:
        """Closing answers nobody, so nothing of it may fail; what was committed is there all the same."""
        if self._engine is not None:
            # The VFS for syncs would raise here what SQLite ignores: then the log simply stays.
            with self._disk.asleep() if self._disk.with_syncs else nullcontext():
                self._engine.close()
            self._engine = None

    def _reopen(self) -> None:
        self._close()
        self._open()

    def _start_again(self) -> None:
        """As after the end of the process, with all that its last commit may have left."""
        self._close()
        found = stored(self._path)
        assert found in {self.state, self._maybe}
        self.state = found
        self._open()

    def _batch(self, *commands: Command[Any], after_ms: int = 10) -> None:
        engine = self._running()
        now_ms = self._now_ms + after_ms
        result = engine.execute_batch(Batch(commands, now_ms))
        with self._disk.asleep():
            intended = seen_by(engine._database.connection)
        try:
            engine.commit()
        except StorageUnavailable:
            raise
        except Exception as error:
            self._maybe = intended
            self._look({self.state, intended})
            raise Unknown from error
        self.state, self._now_ms = intended, now_ms
        for outcome in result.outcomes:
            assert not isinstance(outcome, Exception), outcome
            if isinstance(outcome, tuple) and outcome and isinstance(outcome[0], Delivery):
                self._held += outcome
        self._check_counts()

    def _settling(self) -> Sequence[Command[Any]]:
        """An ack, a nack and an extension of what is held."""
        receipts = [Receipt.parse(delivery.receipt) for delivery in self._held[-3:]]
        make = (
            lambda r: Ack(None, (r,)),
            lambda r: Nack(QUEUE, (r,), reason="no"),
            lambda r: Extend(None, (r,), 9),
        )
        return [made(receipt) for made, receipt in zip(make, receipts, strict=False)]

    def _read(self) -> None:
        with closing(self._running().open_reader()) as reader:
            assert len(reader.browse(QUEUE, None, 10)) == self._running().snapshot().counts[QUEUE].total

    def _checkpoint(self, *, truncate: bool) -> None:
        self._running().log.checkpoint(truncate=truncate)

    def _back_up(self) -> None:
        target = self._directory / "backup" / "forq.db"
        target.parent.mkdir(exist_ok=True)
        try:
            backup_file(str(self._path), str(target))
        except StorageOpenError:
            assert list(target.parent.iterdir()) == []
            raise
        with self._disk.asleep():
            assert stored(target) == self.state
        shutil.rmtree(target.parent)

    def _running(self) -> SqliteEngine:
        assert self._engine is not None
        return self._engine

    def _check_counts(self) -> None:
        """What the engine has in mind is what is stored."""
        counts = {row[1]: row[2:] for row in self.state if row[0] == "counts"}
        known = {
            queue: (each.ready, each.processing, each.failed, each.delayed, each.held, each.bytes)
            for queue, each in self._running().snapshot().counts.items()
        }
        assert known == counts

    def _look(self, allowed: set[State]) -> None:
        """What a crash now would leave."""
        with self._disk.asleep():
            copy = self._directory / "crashed"
            copy.mkdir()
            for file in self._directory.glob("forq.db*"):
                if not file.name.endswith(("-shm", ".lock")):
                    shutil.copy(file, copy)
            if (copy / "forq.db").exists():
                connection = apsw.Connection(str(copy / "forq.db"), vfs="unix")
                with closing(connection):
                    assert connection.pragma("integrity_check") == "ok"
                assert stored(copy / "forq.db") in allowed
            shutil.rmtree(copy)
