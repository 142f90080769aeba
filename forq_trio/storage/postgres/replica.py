"""A streaming replica that answers reads, provided it has caught up with this process: nobody sees an older state.

A read first asks the replica for its last batch, and waits shortly until that is at least the last one that this
process knows. If the replica cannot be reached, or stays behind, the primary answers for some seconds instead.
"""

import time
from collections.abc import Callable
from contextlib import closing

from forq_trio.model import limits
from forq_trio.model.engine_facts import ReplicaState
from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.postgres.connection import PgConnection
from forq_trio.storage.postgres.failures import DatabaseFailed
from forq_trio.storage.postgres.open import DatabaseAddress

_LOOK_SECONDS = 0.005


class Replica:
    """The state of the replica, shared by all readers of a process. Used from any thread."""

    def __init__(self, address: DatabaseAddress, identity: str, known: Callable[[], tuple[int, str]]) -> None:
        """identity: of the database. known: version and maker of the last batch that this process knows."""
        self._address = address
        self._identity = identity
        self._known = known
        self._passed_over_until = 0.0
        self._state: ReplicaState = "away"

    @property
    def state(self) -> ReplicaState:
        return self._state

    def check(self) -> None:
        """Raise StorageOpenError if the address leads to another database. An unreachable replica may come later."""
        try:
            connection = self._connect()
        except DatabaseFailed:
            return
        with closing(connection):
            self._check(connection)

    def current(self, connection: PgConnection | None) -> PgConnection | None:
        """A connection to the replica if it has caught up with this process, else None. connection: to use again."""
        if time.monotonic() >= self._passed_over_until:
            try:
                if connection is None:
                    connection = self._connect()
                    self._check(connection)
                elif connection.lost:
                    connection.reopen()
                if self._catches_up(connection):
                    self._state = "used"
                    return connection
                self.pass_over("behind")
            except (DatabaseFailed, StorageOpenError):
                self.pass_over("away")
        if connection is not None:
            connection.close()
        return None

    def pass_over(self, state: ReplicaState) -> None:
        """Let the primary answer for REPLICA_AWAY_SECONDS."""
        self._state = state
        self._passed_over_until = time.monotonic() + limits.REPLICA_AWAY_SECONDS

    def _check(self, connection: PgConnection) -> None:
        if connection.query("identity") != [(self._identity,)]:
            raise StorageOpenError(f"{self._address.name} is no replica of the database")

    def _connect(self) -> PgConnection:
        return self._address.connect(idle_seconds=30, replica=True)

    def _catches_up(self, connection: PgConnection) -> bool:
        known = self._known()
        ends_at = time.monotonic() + limits.REPLICA_WAIT_SECONDS
        while True:
            last = next(iter(connection.query("last_batch")), (0, ""))
            if last == known or last[0] > known[0]:
                return True
            if time.monotonic() >= ends_at:
                return False
            time.sleep(_LOOK_SECONDS)
