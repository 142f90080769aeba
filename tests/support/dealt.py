"""Several engines on one database, as several processes have them: each batch goes to one of them, at random."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from forq_trio.storage.engine import Batch, BatchResult, Snapshot


class Dealt:
    """An engine whose batches are dealt to others. Its snapshot is that of the one that ran the latest batch."""

    def __init__(self, engines: Sequence[Any], random: Random) -> None:
        self._engines = engines
        self._random = random
        self.latest = engines[0]

    def execute_batch(self, batch: Batch) -> BatchResult:
        self.latest = self._random.choice(self._engines)
        if batch.receivers:  # they began to wait after what the others did: that wakes none of them
            self.latest._catch_up()
            self.latest._taken_over.changes.woken.clear()
        return self.latest.execute_batch(batch)

    def commit(self) -> bool:
        return self.latest.commit()

    def snapshot(self) -> Snapshot:
        return self.latest.snapshot()

    def close(self) -> None:
        for engine in self._engines:
            engine.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(self._engines[0], name)
