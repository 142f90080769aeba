"""Moves plain messages into the page of their lease, so that the lease writes and removes each of them only once.

A message is plain if it has nothing but content, attributes, priority and times. A lease removes plain messages from
the table, and the page becomes their only copy. What the lines of the page do not contain is in a list beside it. An
acknowledgement then only has to remove that list; the lines stay while the lease can be read. All other messages, and
all messages of queues with groups or with a history, stay in the table when they are leased; their lines are copies.

An operation or read that needs a moved message has its page moved back first: into the table, as if it had never left
it. Only find_messages.py (for operations) and needs.py (for reads) ask for that. After somebody has looked at leased
messages of a queue, none are moved for CONSUMER_LOOKED_MS.

The moved pages of a queue overlap neither by sequence number nor by id: a page that would overlap is not moved. So one
seek finds the page that may contain a message.
"""

from collections.abc import Container, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from forq_trio.model import limits
from forq_trio.model.commands import MoveBack
from forq_trio.model.errors import StorageFull
from forq_trio.model.queues.names import is_dead_letter_queue
from forq_trio.storage.allowance import Step
from forq_trio.storage.consumers import PageLine, read_line
from forq_trio.storage.engine import DEFERRED, Deferred
from forq_trio.storage.relational.operations.table import operation_on_each
from forq_trio.storage.relational.rehearsal import each_rehearsed
from forq_trio.storage.relational.row import (
    ATTEMPTS,
    BYTES,
    FIRST_RECEIVED_AT,
    ID,
    POSITION,
    PRIORITY,
    PROCESS_AFTER,
    RECEIVED_AT,
    SEQ,
    ReadyRow,
    Row,
    write_attributes,
)
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.transitions import PROCESSING

NameT = TypeVar("NameT", str, int)


class PageName(NamedTuple):
    """The key of a page's row."""

    queue: str
    consumer: str
    number: int
    page: int


class _Moved(NamedTuple):
    """What is stored of a moved message besides its line. attempts: including this one."""

    seq: int
    id: str
    attempts: int
    received_at: int
    first_received_at: int | None
    process_after: int
    expires_after: int
    priority: int
    position: int
    bytes: int


class MovedPage(NamedTuple):
    """The moved messages of a page, with the times when they were leased and when the leases end (epoch ms)."""

    name: PageName
    receipt: int
    leased_at: int
    lease_until: int
    messages: list[_Moved]

    @property
    def bytes(self) -> int:
        return sum([each.bytes for each in self.messages])

    @property
    def rows(self) -> Sequence[Row]:
        return _Rows(self)

    def row(self, each: _Moved) -> Row:
        """The row that a message would have in the table."""
        return Row(
            seq=each.seq,
            id=each.id,
            queue=self.name.queue,
            status=PROCESSING,
            receipt=self.receipt,
            attempts=each.attempts,
            max_attempts=None,
            expires_after=each.expires_after,
            received_at=each.received_at,
            position=each.position,
            bytes=each.bytes,
            group_id=None,
            failures=None,
            dead_letter_queue=None,
            source_queue=None,
            ttl_ms=None,
            processing_started_at=self.leased_at,
            kind=None,
            priority=each.priority,
        )


class _Rows(Sequence[Row]):
    """The rows that the messages of a page would have in the table, each made on demand."""

    def __init__(self, moved: MovedPage) -> None:
        self._moved = moved

    def __len__(self) -> int:
        return len(self._moved.messages)

    def __getitem__(self, index: Any) -> Any:
        return self._moved.row(self._moved.messages[index])


_encode = msgspec.json.Encoder().encode
_read_messages = msgspec.json.Decoder(list[_Moved]).decode


def move(
    tx: Transaction, name: PageName, receipt: int, lease_until: int, rows: Sequence[ReadyRow]
) -> Sequence[ReadyRow]:
    """Move the plain messages among these ready ones into their page; returns the others.

    None is moved in an isolated batch, in a queue with a history or groups, shortly after somebody looked at leased
    messages, or if the page would overlap another one.
    """
    queue = name.queue
    if tx.isolated or tx.history.log.enabled or queue in tx.grouped:
        return rows
    if tx.leased_pages.are_looked_at(queue, tx.now_ms):
        return rows
    seqs, ids = [row[SEQ] for row in rows], [row[ID] for row in rows]
    if queue not in tx.leased_pages.last:
        tx.leased_pages.last[queue] = next(iter(tx.query("last_moved", queue)), (0, ""))
    last_seq, last_id = tx.leased_pages.last[queue]
    if seqs != sorted(seqs) or ids != sorted(ids) or seqs[0] <= last_seq or ids[0] <= last_id:
        return rows
    expires_after = dict(_remove_plain(tx, seqs))
    plain = [row for row in rows if row[SEQ] in expires_after]
    if not plain:
        return rows
    size = sum([row[BYTES] for row in plain])
    moved = [  # tuples in place of _Moved, which takes longer to make
        (
            row[SEQ],
            row[ID],
            row[ATTEMPTS] + 1,
            row[RECEIVED_AT],
            row[FIRST_RECEIVED_AT],
            row[PROCESS_AFTER],
            expires_after[row[SEQ]],
            row[PRIORITY],
            row[POSITION],
            row[BYTES],
        )
        for row in plain
    ]
    leased = (receipt, tx.now_ms, lease_until, len(moved), size, _encode(moved).decode())
    first, last = plain[0], plain[-1]
    tx.leased_pages.last[queue] = last[SEQ], last[ID]
    tx.query("insert_moved", queue, first[SEQ], last[SEQ], first[ID], last[ID], *name[1:], *leased)
    return [row for row in rows if row[SEQ] not in expires_after]


def _remove_plain(tx: Transaction, seqs: Sequence[int]) -> list[tuple[int, int]]:
    """Remove the plain messages among these from the table; returns their sequence numbers and when they expire."""
    if seqs[-1] - seqs[0] == len(seqs) - 1:  # a range is found faster
        return tx.query("move_range", seqs[0], seqs[-1])
    return tx.query("move_messages", str(seqs))


def moved_page(name: PageName, receipt: int, leased_at: int, lease_until: int, rows: str) -> MovedPage:
    """A page from the columns in which it is stored."""
    return MovedPage(name, receipt, leased_at, lease_until, _read_messages(rows))


def move_back(tx: Transaction, moved: MovedPage) -> None:
    """Move the messages of a page back into the table, leased as they were."""
    name = moved.name
    ((body,),) = tx.query("page_body", *name)
    lines = {line.sequence: line for line in map(read_line, body.splitlines())}
    is_dlq = is_dead_letter_queue(name.queue)
    tx.run("move_back", [_restored(moved, is_dlq, each, lines[each.seq]) for each in moved.messages])
    tx.query("drop_moved", *name)
    tx.due.note(moved.lease_until)


def _restored(moved: MovedPage, is_dlq: bool, each: _Moved, line: PageLine) -> tuple[Any, ...]:
    """The bindings of `move_back`."""
    return (
        each.seq,
        each.id,
        moved.name.queue,
        is_dlq,
        each.attempts,
        each.process_after,
        each.received_at,
        moved.leased_at,
        moved.leased_at if each.first_received_at is None else each.first_received_at,
        each.expires_after,
        each.priority,
        each.position,
        each.bytes,
        moved.lease_until,
        moved.receipt,
        write_attributes(line.attributes),
        line.content,
    )


def move_page_back(tx: Transaction, name: PageName) -> None:
    """Move the moved messages of a page back into the table, and charge the MOVE_BACK allowance."""
    ((receipt, _, leased_at, lease_until, rows),) = tx.query("find_leased_page", *name)
    moved = moved_page(name, receipt, leased_at, lease_until, rows)
    tx.allowances.of(Step.MOVE_BACK).charge(len(moved.messages), moved.bytes)
    move_back(tx, moved)


def move_named_back(tx: Transaction, name: PageName) -> None:
    """`move_page_back` for a read. Raises StorageFull while there is no space for that."""
    if MoveBack in tx.refused:
        raise StorageFull
    move_page_back(tx, name)


def move_ids_back(
    tx: Transaction, wanted: Sequence[tuple[str, str]], found: Sequence[Row]
) -> tuple[bool, frozenset[str]]:
    """Move messages with these (queue, id) back if the table lacks them, as the allowance permits.

    found: those that are in the table. Returns whether some were moved back, and the ids of those that the next batch
    has to look for. Raises StorageFull while there is no space for that.
    """
    missing = _missing(tx, wanted, {row.id for row in found})
    most = limits.CONSUMER_MOVED_BACK_MESSAGES_MAX
    pages = tx.query("moved_by_id", _encode(missing[:most]).decode()) if missing else []
    if not _move_pages_back(tx, [PageName(*page) for page in pages]):
        return False, frozenset([message_id for _, message_id in missing])
    return bool(pages), frozenset([message_id for _, message_id in missing[most:]])


def move_sequences_back(
    tx: Transaction, wanted: Sequence[tuple[str, int]], found: Sequence[Row]
) -> tuple[bool, frozenset[int]]:
    """`move_ids_back` for (queue, sequence number)."""
    missing = _missing(tx, wanted, {row.seq for row in found})
    first = missing[: limits.CONSUMER_MOVED_BACK_MESSAGES_MAX]
    before = tx.query_each("newest_moved", [(queue, sequence + 1, 1) for queue, sequence in first])
    pages = {
        PageName(queue, *name): None
        for (queue, sequence), rows in zip(first, before, strict=True)
        for _, last_seq, _, *name in rows
        if last_seq >= sequence
    }
    if not _move_pages_back(tx, list(pages)):
        return False, frozenset([sequence for _, sequence in missing])
    return bool(pages), frozenset([sequence for _, sequence in missing[len(first) :]])


def _missing(
    tx: Transaction, wanted: Sequence[tuple[str, NameT]], known: Container[NameT]
) -> list[tuple[str, NameT]]:
    """What may be in moved pages of these (queue, name of a message), each once."""
    leasing = {each.queue for each in tx.consumers.values() if each.open is not None}
    return [each for each in dict.fromkeys(wanted) if each[0] in leasing and each[1] not in known]


def _move_pages_back(tx: Transaction, pages: Sequence[PageName]) -> bool:
    """False if the allowance does not permit to move all of them back."""
    return all(each_rehearsed(tx, pages, partial(_move_back_if_allowed, tx), _named))


def _move_back_if_allowed(tx: Transaction, name: PageName) -> bool:
    if tx.allowances.used_up(Step.MOVE_BACK):
        return False
    move_named_back(tx, name)
    return True


def _named(name: PageName) -> list[PageName]:
    return [name]


def id_of_moved(tx: Transaction, queue: str, sequence: int) -> str | None:
    """The id of a moved message; None for one that no page of the queue has."""
    page = newest_moved(tx, queue, sequence + 1, sequence - 1)
    if page is None:
        return None
    ((*_, rows),) = tx.query("find_leased_page", *page)
    return next((each.id for each in _read_messages(rows) if each.seq == sequence), None)


@operation_on_each(MoveBack, changes=lambda _, command: [command.queue])
def move_range_back(tx: Transaction, command: MoveBack) -> Deferred | None:
    tx.leased_pages.look_at(command.queue, tx.now_ms)
    while moved := newest_moved(tx, command.queue, command.before, command.above):
        if tx.allowances.used_up(Step.MOVE_BACK):
            return DEFERRED
        move_named_back(tx, moved)
    return None


def move_first_back(tx: Transaction, queue: str, last: int) -> int:
    """Move the first moved messages of a queue back, as the allowance permits; returns how far, up to `last`."""
    while moved := tx.query("oldest_moved", queue, 0, 1):
        first_seq, _, _, *name = moved[0]
        if first_seq > last:
            break
        if tx.allowances.used_up(Step.MOVE_BACK):
            return int(first_seq) - 1
        move_page_back(tx, PageName(queue, *name))
    return last


def newest_moved(tx: Transaction, queue: str, before: int, above: int) -> PageName | None:
    """The last moved page that has messages between two sequences, both excluded; None if there is none."""
    for _, last_seq, _, *name in tx.query("newest_moved", queue, before, 1):
        if last_seq > above:
            return PageName(queue, *name)
    return None
