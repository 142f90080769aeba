"""Rehearses pieces of work to learn what they will read, so that their reads go to the database together.

Over a network every query is a wait, with the gate held. So if a batch has a piece of work for each of many commands,
queues or groups, the pieces are rehearsed first: statements that change something are left out, and a piece stops at a
query whose rows are not known. Those queries are sent together, with one wait, and the pieces are rehearsed again with
the rows, until each reaches its end. After each rehearsal the state is restored. Finally the pieces are done for good,
with all rows at hand. So many pieces wait for the database as often as one piece does.

That is right only if no piece changes what another one reads. `changes` names what each piece changes, for example the
queue or the key that it is about. If pieces have a name in common, all but the first do their own waiting. A query is
repeated if a piece has changed its rows: if they depend on more than such a name (statements that their file does not
mark, see statements.py) and one of their tables was changed; if the piece itself changed them; or if a piece about
another queue has changed this one (`changed_in`), for example by moving a message there or ending a stage of it. A
wrong rehearsal costs a wait, never a wrong answer.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

from forq_trio.storage.relational.connection import DistantConnection, Rows, WriteConnection
from forq_trio.storage.relational.transaction import Transaction

ItemT = TypeVar("ItemT")
OutcomeT = TypeVar("OutcomeT")
Read = tuple[Any, ...]
"""A statement and its bindings."""

PIECES_MAX = 256
"""How many pieces are rehearsed together, because the rows of all of them are in memory."""
ROUNDS_MAX = 8
"""After so many common waits, each piece does its own waiting."""


class _Unknown(BaseException):
    """A rehearsal cannot go on; none of the work that it tries may take this for an error of its own"""


class _Piece:
    """A piece of work. rows: the known rows of its reads. wrote: the tables that it has changed."""

    def __init__(self) -> None:
        self.rows: dict[Read, list[Any]] = {}
        self.wrote: set[str] = set()


class _Prompter:
    """Takes the place of the connection while pieces run, and answers reads whose rows are known.

    See `WriteConnection`. piece: the one that runs now. wrote: the tables that pieces have changed. wanted: in a
    rehearsal, the reads whose rows are not known yet, with the pieces that need them; None when the pieces are done for
    good.
    """

    is_distant = True

    def __init__(self, connection: DistantConnection, pieces: Iterable[_Piece]) -> None:
        self.connection = connection
        self.storage_errors = connection.storage_errors
        self.pieces = pieces
        self.piece = _Piece()
        self.wrote: set[str] = set()
        self.wanted: dict[Read, list[_Piece]] | None = None
        self._left_out: set[Read] = set()

    @property
    def waits(self) -> int:
        return self.connection.waits

    def begin(self, piece: _Piece) -> None:
        """Note which piece runs from now on."""
        self.piece = piece
        self.piece.wrote.clear()

    def query(self, name: str, *bindings: Any) -> list[Any]:
        if self.connection.writes(name):
            self._note_written(name)
            if self.wanted is None:
                return self.connection.query(name, *bindings)
            if self.connection.returns_rows(name):
                raise _Unknown
            return []
        (found,) = self.query_each(name, [bindings])
        return found

    def query_each(self, name: str, rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
        read = self.connection.reads(name)
        is_stale = not read.isdisjoint(
            self.piece.wrote if self.connection.names_one_thing(name) else self.wrote
        )
        known = {} if is_stale else self.piece.rows
        unknown = [row for row in dict.fromkeys(rows) if (name, *row) not in known]
        if self.wanted is not None and unknown:
            for row in () if is_stale else unknown:
                if (name, *row) not in self._left_out:
                    self.wanted.setdefault((name, *row), []).append(self.piece)
            raise _Unknown
        found = dict(zip(unknown, self.connection.query_each(name, unknown), strict=True)) if unknown else {}
        return [found[row] if row in found else list(known[name, *row]) for row in rows]

    def run(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._note_written(name)
        if self.wanted is None:
            self.connection.run(name, rows)

    def _note_written(self, name: str) -> None:
        tables = self.connection.writes(name)
        self.piece.wrote |= tables
        self.wrote |= tables

    def rows(self, name: str, *bindings: Any) -> Rows:
        if self.wanted is not None:
            raise _Unknown
        return self.connection.rows(name, *bindings)

    def savepoint(self) -> AbstractContextManager[Any]:
        return self.connection.savepoint() if self.wanted is None else nullcontext()

    def changed_in(self, queue: str) -> None:
        """Note that a piece about another queue changed this one."""
        for piece in self.pieces if self.wanted is None else ():
            piece.rows = {read: rows for read, rows in piece.rows.items() if read[1:2] != (queue,)}

    def fetch(self) -> None:
        """Run all wanted reads with one wait."""
        assert self.wanted is not None
        by_name: dict[str, list[Read]] = {}
        for read in self.wanted:
            by_name.setdefault(read[0], []).append(read)
        found = self.connection.query_all(
            [(name, [read[1:] for read in reads]) for name, reads in by_name.items()]
        )
        for reads, each in zip(by_name.values(), found, strict=True):
            for read, rows in zip(reads, each, strict=True):
                if rows is None:
                    self._left_out.add(read)
                    continue
                for piece in self.wanted[read]:
                    piece.rows[read] = rows


def each_rehearsed(
    tx: Transaction,
    items: Sequence[ItemT],
    work: Callable[[ItemT], OutcomeT],
    changes: Callable[[ItemT], Iterable[Hashable]],
) -> list[OutcomeT]:
    """The outcomes of `work` on these items, in order. changes: the names of what the work on an item changes."""
    connection: WriteConnection = tx.connection
    if len(items) < 2 or tx.isolated or not connection.is_distant or isinstance(connection, _Prompter):
        return [work(item) for item in items]
    if len(items) > PIECES_MAX:
        parts = [items[start : start + PIECES_MAX] for start in range(0, len(items), PIECES_MAX)]
        return [outcome for part in parts for outcome in each_rehearsed(tx, part, work, changes)]
    if tx.inserts.has_rows:
        tx.write_inserts()
    pieces: dict[int, _Piece] = {}
    named: set[Hashable] = set()
    for index, item in enumerate(items):
        names = set(changes(item))
        if named.isdisjoint(names):
            pieces[index] = _Piece()
        named |= names
    prompter = _Prompter(cast("DistantConnection", connection), pieces.values())
    tx.connection = prompter
    try:
        _rehearse(tx, prompter, [(piece, items[index]) for index, piece in pieces.items()], work)
        outcomes = []
        for index, item in enumerate(items):
            prompter.begin(pieces.get(index) or _Piece())
            outcomes.append(work(item))
        return outcomes
    finally:
        tx.connection = connection


def _rehearse(
    tx: Transaction, prompter: _Prompter, pieces: Sequence[tuple[_Piece, ItemT]], work: Callable[[ItemT], Any]
) -> None:
    """Find out what the pieces will read, and read it."""
    allowances = tx.allowances
    for _ in range(ROUNDS_MAX):
        notes = tx.copy()
        tx.allowances = allowances.copy()
        wanted: dict[Read, list[_Piece]] = {}
        prompter.wanted = wanted
        for piece, item in pieces:
            prompter.begin(piece)
            prompter.wrote.clear()
            try:
                work(item)
            except (_Unknown, Exception):
                continue
        tx.restore(notes)
        tx.allowances = allowances
        if wanted:
            prompter.fetch()
        prompter.wanted = None
        if not wanted:
            break
    prompter.wrote.clear()
