"""Checks the database's server every 30 s: connections, dead rows, size, and who keeps vacuum from removing rows.

The admin UI, metrics and health show the result of the latest check. The server mostly does not tell for how long a
snapshot has been held: then it counts from the first check that found it.
"""

from collections.abc import Callable, Iterator

import trio

from forq_trio.jobs.periodic import Periodic
from forq_trio.model import limits
from forq_trio.model.server.database_state import DatabaseState, HeldSnapshot, SnapshotKeeper
from forq_trio.readers.pool import ReaderPool
from forq_trio.telemetry.families import Family, by_label, gauge
from forq_trio.telemetry.log import LogEvent, log

_Key = tuple[str, str, int | None, str]
"""Identifies who keeps a snapshot: all members of SnapshotKeeper except its state and `idle_ms`."""


class DatabaseWatch:
    """state: of the latest check; None before the first, and if it failed. now: a clock in seconds."""

    def __init__(self, readers: ReaderPool, now: Callable[[], float] = trio.current_time) -> None:
        self._readers = readers
        self._now = now
        self._since: dict[_Key, float] = {}
        """When each snapshot that the latest check found was first seen."""
        self._reported: SnapshotKeeper | None = None
        self.state: DatabaseState | None = None

    async def check(self) -> str | None:
        """Check once. Raises what `ReaderPool.run` raises."""
        try:
            reading = await self._readers.run(lambda reader: reader.database())
        except Exception:
            self.state = None
            raise
        if reading is None:
            return None
        now = self._now()
        self._since = {(key := _key(each)): self._since.get(key, now) for each in reading.keepers}
        snapshot = None
        if reading.keepers:
            oldest = reading.keepers[0]
            seen_ms = round((now - self._since[_key(oldest)]) * 1_000)
            snapshot = HeldSnapshot(oldest, max(seen_ms, oldest.idle_ms))
        self.state = DatabaseState(reading, snapshot)
        self._tell(self.state.old_snapshot)
        return "no old snapshot" if self._reported is None else f"an old snapshot: {self._reported.words}"

    def families(self) -> Iterator[Family]:
        """The latest look; no series before the first one, after one that failed, and with other databases."""
        state = self.state
        reading = snapshot = None
        if state is not None:
            reading, snapshot = state.reading, state.snapshot
        held_ms = 0 if snapshot is None else snapshot.held_ms
        yield gauge(
            "forq_database_oldest_snapshot_seconds",
            "How long the oldest snapshot keeps vacuum from removing dead rows, refreshed every 30 seconds;"
            " PostgreSQL only.",
            None if state is None else held_ms / limits.SECOND_MS,
        )
        yield gauge(
            "forq_database_dead_rows",
            "Dead rows of messages, as PostgreSQL estimates them, every 30 seconds.",
            None if reading is None else reading.dead_rows,
        )
        connections = {}
        if reading is not None:
            connections["ours"] = reading.connections_ours
            connections["all"] = reading.connections
            connections["limit"] = reading.connections_max
        yield gauge(
            "forq_database_connections",
            "Connections to PostgreSQL, every 30 seconds: ours, all, and the limit.",
            by_label("whose", connections),
        )
        yield gauge(
            "forq_database_bytes",
            "Bytes of the PostgreSQL database, every 30 seconds.",
            None if reading is None else reading.bytes,
        )

    def _tell(self, snapshot: HeldSnapshot | None) -> None:
        """Log an old snapshot once, and log its end."""
        if snapshot is None:
            if self._reported is not None:
                log(LogEvent.SNAPSHOT_ENDED)
            self._reported = None
        elif self._reported is None or _key(self._reported) != _key(snapshot.keeper):
            self._reported = snapshot.keeper
            log(LogEvent.SNAPSHOT_HELD, by=self._reported.words, seconds=snapshot.held_ms // 1_000)


def _key(keeper: SnapshotKeeper) -> _Key:
    return keeper.kind, keeper.name, keeper.pid, keeper.oldest


def database_job(watch: DatabaseWatch) -> Periodic:
    """The job that checks now and every 30 s."""
    return Periodic(
        "database", limits.DATABASE_LOOK_SECONDS, watch.check, title="Look at the database", nudged=True
    )
