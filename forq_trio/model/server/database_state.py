"""What a PostgreSQL server reports about itself and about the queue's tables."""

from typing import Literal, NamedTuple

from msgspec import Struct

from forq_trio.model import limits

KeeperKind = Literal["session", "prepared", "slot"]


class SnapshotKeeper(NamedTuple):
    """Something that keeps an old snapshot open, so that dead rows which it may still see cannot be removed."""

    kind: KeeperKind  # a connection, a prepared transaction or a replication slot
    name: str  # of the application, the transaction or the slot
    pid: int | None  # the server process of a connection
    state: str | None  # of a connection, such as "idle in transaction"; None if the role may not see it
    oldest: str  # the transaction as of which it sees the database
    idle_ms: int  # for how long at least, as far as the server can tell; 0 if it cannot

    @property
    def words(self) -> str:
        """A description for people."""
        if self.kind == "session":
            said = f"{self.name or 'no name'} (pid {self.pid})"
            return f"{said}, {self.state}" if self.state else said
        return f"{'prepared transaction' if self.kind == 'prepared' else 'replication slot'} {self.name}"


class HeldSnapshot(Struct, frozen=True):
    """The oldest snapshot. held_ms: for how long at least it has been open, since it was first seen."""

    keeper: SnapshotKeeper
    held_ms: int


class DatabaseReading(Struct, frozen=True):
    """One reading of the server's state."""

    connections: int  # all connections to the server, which accepts connections_max
    connections_ours: int  # those of the queue's processes
    connections_max: int
    hidden: int  # the connections whose state the role may not see
    dead_rows: int  # dead rows of messages, as the server estimates them
    vacuumed_at: int | None  # when dead rows were last removed (epoch ms), None for never
    bytes: int  # of the whole database
    keepers: tuple[SnapshotKeeper, ...]  # the oldest snapshot first


class DatabaseState(Struct, frozen=True):
    """The latest reading, and its oldest snapshot, None without one."""

    reading: DatabaseReading
    snapshot: HeldSnapshot | None

    @property
    def old_snapshot(self) -> HeldSnapshot | None:
        """The oldest snapshot, if it is old enough to be a problem; else None."""
        held = self.snapshot
        return held if held is not None and held.held_ms >= limits.SNAPSHOT_HELD_MS else None
