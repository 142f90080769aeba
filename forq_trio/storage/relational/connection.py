"""The interface of an engine's write connection for operations: named statements inside the open transaction."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from forq_trio.storage.relational.statements import load, load_named, names_of

FILES = [file for file in names_of() if file != "move"]  # which `forq move` completes
STATEMENTS = {name: statement for file in FILES for name, statement in load(file).items()}
"""The statements of writers and readers."""
NAMED = frozenset[str]().union(*map(load_named, FILES))
"""Those of STATEMENTS whose rows depend on one thing that their bindings name."""


class Rows(Protocol):
    """The rows of a statement, to be closed after use."""

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> None: ...


class WriteConnection(Protocol):
    """The write connection of an engine. Bindings are None, bool, int, str or bytes.

    storage_errors: the errors of the database or the disk, not of a command; they fail the whole batch. is_distant:
    each query waits for a network, so queries that are known to be needed are sent together (`query_each`). waits: how
    often a query has waited since the transaction began.
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
        """Run a named statement for each tuple of bindings, with one wait for all; returns the rows of each."""
        ...

    def run(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a named statement once for each tuple of bindings."""
        ...

    def rows(self, name: str, *bindings: Any) -> Rows:
        """The rows of a named statement, read one by one."""
        ...

    def savepoint(self) -> AbstractContextManager[Any]:
        """A context manager: if its body raises, the statements in it are undone."""
        ...

    def changed_in(self, queue: str) -> None:
        """Note that a command about another queue changed this one, so that earlier reads of it are out of date."""
        ...


class DistantConnection(WriteConnection, Protocol):
    """A write connection over a network."""

    def query_all(
        self, reads: Sequence[tuple[str, Sequence[tuple[Any, ...]]]]
    ) -> list[list[list[Any] | None]]:
        """`query_each` for several statements, with one wait for all. None replaces rows with too many bytes."""
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
        """Whether a statement returns rows, so that its caller has to wait for it."""
        ...
