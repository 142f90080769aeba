"""Several engines on one PostgreSQL database that is rough with them: batches are undone, cut off, committed unheard.

What a batch comes to is what it would have come to without all that.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any

from forq_trio.model.errors import StorageUnavailable
from forq_trio.storage.engine import Batch, BatchResult
from forq_trio.storage.postgres.failures import DatabaseFailed
from support.cuts import cut_one
from support.dealt import Dealt

UNDONE, CUT, ISOLATED, UNHEARD = 0.08, 0.08, 0.15, 0.1
TRIES_MAX = 4
"""Each of three engines may find out that its connection was cut."""


class Rough(Dealt):
    """seen: how often what happened."""

    def __init__(self, engines: Sequence[Any], random: Random, url: str) -> None:
        super().__init__(engines, random)
        self._url = url
        self.seen: Counter[str] = Counter()

    def execute_batch(self, batch: Batch) -> BatchResult:
        draw = self._random.random()
        if draw < UNDONE + CUT:
            self._run_in_vain(self._random.choice(self._engines), batch, is_cut=draw < CUT)
        for _ in range(TRIES_MAX):
            with suppress(StorageUnavailable, DatabaseFailed):
                return super().execute_batch(batch)
        raise AssertionError("the database is there")

    def _run_in_vain(self, engine: Any, batch: Batch, *, is_cut: bool) -> None:
        with suppress(StorageUnavailable):
            engine.execute_batch(batch)
            if not is_cut:
                engine.roll_back()
                self.seen["undone"] += 1
                return
            cut_one(self._url, engine)
            self.seen["cut"] += 1
            changed = engine._is_open and engine.connection.wrote
            engine.commit()
            assert not changed, "the connection was cut before the COMMIT"

    def commit(self) -> bool:
        engine, draw = self.latest, self._random.random()
        if engine._is_open:
            if draw < ISOLATED:
                engine.connection.send(
                    "save_batch", None, engine._position.process, b""
                )  # nobody waits for it
                self.seen["isolated"] += 1
            elif draw < ISOLATED + UNHEARD and engine.connection.wrote:
                return self._commit_unheard(engine)
        return engine.commit()

    def _commit_unheard(self, engine: Any) -> bool:
        """The database commits, and its answer is lost."""
        connection = engine.connection

        def send(name: str, *bindings: object) -> None:
            del connection.send
            connection.send(name, *bindings)
            assert name == "commit"
            connection.wait()
            cut_one(self._url, engine)
            self.seen["unheard"] += 1
            connection.close()
            raise DatabaseFailed("cut")

        connection.send = send
        return engine.commit()
