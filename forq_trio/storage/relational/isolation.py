"""The part of a Transaction that runs statements, and undoes: savepoints, and damaged messages that are set aside."""

from collections.abc import Callable, Sequence
from typing import Any

from forq_trio.model import limits
from forq_trio.storage.engine import SetAside
from forq_trio.storage.relational.cache import Cache
from forq_trio.storage.relational.changes import Changes
from forq_trio.storage.relational.connection import Connection
from forq_trio.storage.relational.heads import Heads
from forq_trio.storage.relational.inserts import Inserts
from forq_trio.storage.relational.scans import Scans


class Isolation:
    """What a batch needs to go on where a part of it fails.

    isolated: each command and each due message runs in a savepoint of its own (`attempt`). inserts: rows that are yet
    to be written. set_aside: messages that failed there. retry_later: the due messages that are left are tried again
    after DUE_RETRY_MS, not at once.
    """

    def __init__(self, connection: Connection, cache: Cache, now_ms: int, *, isolated: bool) -> None:
        self.connection = connection
        self._cache = cache
        self.now_ms = now_ms
        self.isolated = isolated
        self.inserts = Inserts()
        self.set_aside: list[SetAside] = []
        self.retry_later = False
        self._waits_before = 0

    def query(self, name: str, *bindings: Any) -> list[Any]:
        """Run a named statement and return its rows."""
        if self.inserts.waiting:
            self.write_inserts()
        return self.connection.query(name, *bindings)

    def begin_step(self) -> None:
        """A step begins, which may wait for the database WAITS_OF_A_STEP_MAX times."""
        self._waits_before = self.connection.waits

    @property
    def waited_out(self) -> bool:
        """True if the step has waited as often as it may: the next batch does the rest, and others come in between."""
        return self.connection.waits - self._waits_before >= limits.WAITS_OF_A_STEP_MAX

    def query_each(self, name: str, rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
        """Run a named statement once for each tuple of bindings and return the rows of each; waits once for all."""
        if not rows:
            return []
        if self.inserts.waiting:
            self.write_inserts()
        return self.connection.query_each(name, rows)

    def query_written(self, name: str, *bindings: Any) -> list[Any]:
        """`query`, for messages that were claimed or read before: others may wait to be written."""
        return self.connection.query(name, *bindings)

    def run(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a named statement once for each tuple of bindings."""
        if rows:
            if self.inserts.waiting:
                self.write_inserts()
            self.connection.run(name, rows)

    def write_inserts(self) -> None:
        """Write the rows of sent messages that are not written yet."""
        self.inserts.write(self.connection.run)

    def leave_inserts(self) -> None:
        """Have them written when something needs them: perhaps they are claimed before."""
        if self.isolated:
            self.write_inserts()
        else:
            self.inserts.let_wait()

    def attempt(self, work: Callable[[], None]) -> Exception | None:
        """Run `work` in a savepoint; what it raises is returned, and then nothing of it is left.

        Errors of the database itself are raised: they are no fault of the work.
        """
        notes = self.savepoint()
        try:
            with self.connection.savepoint():
                work()
        except self.connection.storage_errors:
            raise
        except Exception as error:
            self.restore(notes)
            return error
        return None

    def put_aside(self, queue: str, seq: int, error: Exception) -> bool:
        """A message is damaged: leave it alone for a while. False where too many are: try all again a bit later."""
        if self._cache.set_aside.get(seq, 0) > self.now_ms:
            return True
        if len(self._cache.set_aside) + len(self.set_aside) >= limits.SET_ASIDE_MESSAGES_MAX:
            self.retry_later = True
            return False
        self.set_aside.append(SetAside(queue, seq, f"{type(error).__name__}: {error}"))
        return True

    def sequences_set_aside(self) -> list[int]:
        """The messages that are set aside, by sequence."""
        earlier = [seq for seq, retry_at in self._cache.set_aside.items() if retry_at > self.now_ms]
        return earlier + [message.sequence for message in self.set_aside]

    def next_retry_ms(self) -> int:
        """When the first message that is set aside is tried again (epoch ms)."""
        retries = [retry_at for retry_at in self._cache.set_aside.values() if retry_at > self.now_ms]
        return min(retries, default=self.now_ms + limits.SET_ASIDE_RETRY_MS)

    def savepoint(self) -> dict[str, Any]:
        """What `restore` needs to undo the notes (not the statements) made after this."""
        return {name: _copy(value) for name, value in vars(self).items() if name not in _SHARED}

    def restore(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


_SHARED = ("connection", "ids", "allowances", "_cache")


def _copy(value: Any) -> Any:
    """Deep enough: notes are numbers, immutable values, sets, lists, dicts, and what has a `copy` of its own."""
    if isinstance(value, dict):
        return {key: _copy(each) for key, each in value.items()}
    if isinstance(value, set | list | Changes | Heads | Inserts | Scans):
        return value.copy()
    return value
