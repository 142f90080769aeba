"""The rows of new messages that are not written yet.

They may wait for the claims of their batch: a message that has only the plain columns and is claimed at once is stored
leased, with one statement instead of three. Before anything else is read or changed, all of them are written
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
"""The columns of `insert_message` that follow those of `insert_plain`, so that indexes are the same in both."""
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
        self.waiting = False  # they are not written until something needs them
        self._ready: dict[str, dict[int, Bindings]] = {}
        """Rows of `insert_plain` that may be claimed before they are written, by queue and sequence number."""
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
        """Whether there are rows to write, whether or not they may wait."""
        return bool(self.plain or self.others or self.waiting)

    def let_wait(self) -> None:
        """Write the rows only at the end of the batch, unless something needs them earlier."""
        self.waiting = True
        delayed = []
        for row in self.plain:
            if row[_STATUS] == READY:
                self._ready.setdefault(row[_QUEUE], {})[row[SEQ]] = row
            else:
                delayed.append(row)
        self.plain = delayed

    def has_new(self, queue: str) -> bool:
        """Whether the latest unwritten row, of either kind, belongs to this queue."""
        return any(rows[-1][_QUEUE] == queue for rows in (self.plain, self.others) if rows)

    def holds_all(self, queue: str, ready: int) -> bool:
        """Whether none of a queue's ready messages is written yet. ready: how many there are."""
        return len(self._ready.get(queue, ())) == ready

    def first(self, queue: str, most: int, ready: int) -> list[ReadyRow]:
        """The first messages of a queue in claim order; none if any of its `ready` messages is already written."""
        rows = self._ready.get(queue, ())
        if len(rows) != ready:
            return []
        first = nsmallest(most, rows.values(), key=sent_place) if rows else []
        return [
            (seq, id, content, 0, now, priority, None, None, None, due, position, size, None, None, None)
            for seq, id, _, _, due, now, _, priority, position, size, content in first
        ]

    def lease(self, queue: str, leases: list[Bindings]) -> list[Bindings]:
        """Lease unwritten messages; returns the bindings of `lease` for those that are already written."""
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
        """Write all rows."""
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
