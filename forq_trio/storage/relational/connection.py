"""What the operations need of an engine's write connection: named statements, run inside the open transaction."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from forq_trio.storage.relational.statements import load

STATEMENTS = load("engine") | load("shuffle") | load("publishing") | load("logs") | load("consumers")
STATEMENTS |= load("rates") | load("schedules") | load("keys") | load("outboxes")


class Rows(Protocol):
    """To be closed."""

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> None: ...


class Connection(Protocol):
    """The write connection of an engine. Bindings are None, bool, int, str or bytes.

    storage_errors: errors of the database or the disk, not of a command: they fail the whole batch.
    """

    @property
    def storage_errors(self) -> tuple[type[Exception], ...]: ...

    def query(self, name: str, *bindings: Any) -> list[Any]:
        """Run a named statement and return its rows."""
        ...

    def run(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a named statement once for each tuple of bindings."""
        ...

    def rows(self, name: str, *bindings: Any) -> Rows:
        """The rows of a named statement, read one by one."""
        ...

    def savepoint(self) -> AbstractContextManager[Any]:
        """Statements in its body are undone if that raises."""
        ...
