"""What the operations need of an engine's write connection: named statements, run inside the open transaction."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from forq_trio.storage.relational.statements import load, load_named, names_of

FILES = [file for file in names_of() if file != "move"]  # which `forq move` completes
STATEMENTS = {name: statement for file in FILES for name, statement in load(file).items()}
"""Those that writers and readers run."""
NAMED = frozenset[str]().union(*map(load_named, FILES))
"""Those of them whose rows depend on one thing that their bindings name."""


class Rows(Protocol):
    """To be closed."""

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> None: ...


class WriteConnection(Protocol):
    """The write connection of an engine. Bindings are None, bool, int, str or bytes.

    storage_errors: errors of the database or the disk, not of a command: they fail the whole batch. is_distant: each
    query waits for a network, so what is known to be needed is asked for at once (`query_each`). waits: how often one
    waited, since the transaction began.
    """

    is_distant: bool

    @property
    def waits(self) -> int: ...

    @property
    def storage_errors(self) -> tuple[type[Exception], ...]: ...

    def query(self, name: str, *bindings: Any) -> list[Any]:
        """Run a named statement and return its rows."""
        ...

    def query_each(self, name: str, rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
        """Run a named statement once for each tuple of bindings and return the rows of each; waits once for all."""
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

    def changed_in(self, queue: str) -> None:
        """A command about another queue changed this one: what was read of it before is not so any more."""
        ...


class DistantConnection(WriteConnection, Protocol):
    """One behind a network."""

    def query_all(
        self, reads: Sequence[tuple[str, Sequence[tuple[Any, ...]]]]
    ) -> list[list[list[Any] | None]]:
        """`query_each` of several statements; waits once for all. None where there would be too many bytes."""
        ...

    def names_one_thing(self, name: str) -> bool:
        """True if the rows of a statement depend on one thing that its bindings name."""
        ...

    def reads(self, name: str) -> frozenset[str]:
        """The tables that a statement names."""
        ...

    def writes(self, name: str) -> frozenset[str]:
        """The tables that a statement changes."""
        ...

    def returns_rows(self, name: str) -> bool:
        """True if somebody has to wait for a statement."""
        ...
