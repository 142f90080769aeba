"""What a PostgreSQL server says of itself and of the queue's tables on it."""

from typing import Literal, NamedTuple

from msgspec import Struct

from forq_trio.model import limits

KeeperKind = Literal["session", "prepared", "slot"]


class SnapshotKeeper(NamedTuple):
    """What keeps a snapshot: dead rows that it may still see cannot be removed, here and in all that are as old."""

    kind: KeeperKind  # a connection, a prepared transaction or a replication slot
    name: str  # that of the application, the transaction or the slot
    pid: int | None  # the server process of a connection
    state: str | None  # of a connection, such as "idle in transaction"; None where the role may not see it
    oldest: str  # the transaction as of which it sees the database
    idle_ms: int  # for how long at least, as the server can tell; 0 where it cannot

    @property
    def words(self) -> str:
        """Who it is, for people."""
        if self.kind == "session":
            said = f"{self.name or 'no name'} (pid {self.pid})"
            return f"{said}, {self.state}" if self.state else said
        return f"{'prepared transaction' if self.kind == 'prepared' else 'replication slot'} {self.name}"


class HeldSnapshot(Struct, frozen=True):
    """The oldest snapshot. held_ms: since when it was first seen, or longer."""

    keeper: SnapshotKeeper
    held_ms: int


class DatabaseReading(Struct, frozen=True):
    """One look."""

    connections: int  # of all to the server, which takes connections_max
    connections_ours: int  # of these those of the queue's processes
    connections_max: int
    hidden: int  # of how many the role may not see the state
    dead_rows: int  # of messages, as the server estimates them
    vacuumed_at: int | None  # when they were last removed (epoch ms), None for never
    bytes: int  # of the whole database
    keepers: tuple[SnapshotKeeper, ...]  # the oldest snapshot first


class DatabaseState(Struct, frozen=True):
    """The latest look, and the oldest snapshot of it, None without one."""

    reading: DatabaseReading
    snapshot: HeldSnapshot | None

    @property
    def old_snapshot(self) -> HeldSnapshot | None:
        """The oldest snapshot if it is so old that it is trouble."""
        held = self.snapshot
        return held if held is not None and held.held_ms >= limits.SNAPSHOT_HELD_MS else None
