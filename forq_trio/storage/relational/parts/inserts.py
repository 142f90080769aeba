"""The rows of sent messages that are yet to be written.

They may wait for the claims of their batch: a message with the plain columns only that is claimed at once is stored
leased, by one statement instead of three. Before anything else is read or changed, all of them are written
(`Transaction.query`).
"""

from collections.abc import Callable, Sequence
from heapq import nsmallest
from typing import Any

from forq_trio.storage.relational.connection import STATEMENTS
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.row import Place, ReadyRow
from forq_trio.storage.relational.statements import bound_columns, check_order
from forq_trio.storage.transitions import READY

Bindings = tuple[Any, ...]
PLAIN = bound_columns(STATEMENTS["insert_plain"])
OWN = bound_columns(STATEMENTS["insert_message"])[len(PLAIN) :]
"""The columns that `insert_message` has beside those of `insert_plain`, behind them: names of places are of both."""
check_order(bound_columns(STATEMENTS["insert_message"]), " ".join((*PLAIN, *OWN)))
SEQ = PLAIN.index("seq")
ID = PLAIN.index("id")
BYTES = PLAIN.index("bytes")
_QUEUE = PLAIN.index("queue")
_STATUS = PLAIN.index("status")
_PRIORITY = PLAIN.index("priority")
_POSITION = PLAIN.index("position")

check_order(
    PLAIN, "seq id queue status process_after received_at expires_after priority position bytes content"
)
check_order(
    bound_columns(STATEMENTS["insert_leased"]),
    "seq id queue process_after received_at expires_after priority bytes lease_until receipt content",
)


def sent_place(row: Bindings) -> Place:
    """The place of a new message in the claim order."""
    return -row[_PRIORITY], row[_POSITION], row[SEQ]


class Inserts(Part):
    """The bindings of rows, by the statement that writes them."""

    def __init__(self) -> None:
        self.plain: list[Bindings] = []  # of `insert_plain`
        self.others: list[Bindings] = []  # of `insert_message`
        self.waiting = False  # they wait for what needs them
        self._ready: dict[str, dict[int, Bindings]] = {}
        """Those of `insert_plain` that may be claimed before they are written, by queue and sequence."""
        self._leased: list[Bindings] = []  # of `insert_leased`

    def copy(self) -> Any:
        ready = {queue: rows.copy() for queue, rows in self._ready.items()}
        return self.plain.copy(), self.others.copy(), self.waiting, ready, self._leased.copy()

    def restore(self, copied: Any) -> None:
        self.plain, self.others, self.waiting, self._ready, self._leased = copied

    def discard(self) -> None:
        if self.plain or self.others or self._ready or self._leased:
            self.plain, self.others, self._ready, self._leased = [], [], {}, []
        self.waiting = False

    @property
    def has_rows(self) -> bool:
        """True if there are rows to be written, whether or not they wait."""
        return bool(self.plain or self.others or self.waiting)

    def let_wait(self) -> None:
        """They are written at the end of the batch, if nothing needs them before."""
        self.waiting = True
        delayed = []
        for row in self.plain:
            if row[_STATUS] == READY:
                self._ready.setdefault(row[_QUEUE], {})[row[SEQ]] = row
            else:
                delayed.append(row)
        self.plain = delayed

    def has_new(self, queue: str) -> bool:
        """True if the latest row that is to be written, of either kind, is of this queue."""
        return any(rows[-1][_QUEUE] == queue for rows in (self.plain, self.others) if rows)

    def holds_all(self, queue: str, ready: int) -> bool:
        """True if all ready messages of a queue, so many, are yet to be written."""
        return len(self._ready.get(queue, ())) == ready

    def first(self, queue: str, most: int, ready: int) -> list[ReadyRow]:
        """The first messages of a queue in claim order; none if others are among its so many ready ones."""
        rows = self._ready.get(queue, ())
        if len(rows) != ready:
            return []
        first = nsmallest(most, rows.values(), key=sent_place) if rows else []
        return [
            (seq, id, content, 0, now, priority, None, None, None, due, position, size, None, None, None)
            for seq, id, _, _, due, now, _, priority, position, size, content in first
        ]

    def lease(self, queue: str, leases: list[Bindings]) -> list[Bindings]:
        """Messages are claimed; returns the bindings of `lease` for those that are written."""
        waiting = self._ready.get(queue)
        if not waiting:
            return leases
        written = []
        for lease in leases:
            row = waiting.pop(lease[-1], None)
            if row is None:
                written.append(lease)
            else:
                seq, id, _, _, due, now, expires_after, priority, _, size, content = row
                *_, lease_until, token, _ = lease
                self._leased.append(
                    (seq, id, queue, due, now, expires_after, priority, size, lease_until, token, content)
                )
        return written

    def write(self, run: Callable[[str, Sequence[Bindings]], None]) -> None:
        """Write them all."""
        for rows in self._ready.values():
            self.plain += rows.values()
        if self._ready:
            self._ready = {}
        if self.plain:
            run("insert_plain", self.plain)
            self.plain = []
        if self.others:
            run("insert_message", self.others)
            self.others = []
        if self._leased:
            run("insert_leased", self._leased)
            self._leased = []
        self.waiting = False
