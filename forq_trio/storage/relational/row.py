"""A stored message as the engine reads it, and its JSON columns."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.keys.types import KeyInfo, Mode
from forq_trio.model.messages.types import STATUS_NAMES, Failure, Status
from forq_trio.model.queues.settings import QueueSettings
from forq_trio.storage.relational.statements import check_order, columns
from forq_trio.storage.rules import failed_again

ShownT = TypeVar("ShownT")
InfoT = TypeVar("InfoT", bound=msgspec.Struct)

_FAILURES = msgspec.json.Decoder(list[tuple[int, int, str | None]])
_ATTRIBUTES = msgspec.json.Decoder(dict[str, str])
_KEY = msgspec.json.Decoder(tuple[str, str, int, Mode, int, int, int, int | None])
_SETTINGS = msgspec.json.Decoder(QueueSettings)
_encode = msgspec.json.Encoder().encode


ReadyRow = tuple[
    int,
    str,
    str,
    int,
    int,
    int,
    int | None,
    str | None,
    str | None,
    int,
    int,
    int,
    str | None,
    str | None,
    int | None,
]
"""A ready message as a claim reads it: the columns `ready`, whose indexes have names below.

It stays the plain tuple that the statement returns: with an object per message, a claim of many takes 7 % longer.
"""
READY_COLUMNS: Final = columns("engine", "ready")
check_order(
    READY_COLUMNS,
    "seq id content attempts received_at priority first_received_at attributes group_id process_after position"
    " bytes key kind max_attempts",
)
SEQ: Final = 0
ID: Final = 1
CONTENT: Final = 2
ATTEMPTS: Final = 3
RECEIVED_AT: Final = 4
PRIORITY: Final = 5
FIRST_RECEIVED_AT: Final = 6
ATTRIBUTES: Final = 7
GROUP_ID: Final = 8
PROCESS_AFTER: Final = 9
POSITION: Final = 10
BYTES: Final = 11
KEY: Final = 12
KIND: Final = 13
MAX_ATTEMPTS: Final = 14


Place = tuple[int, int, int]
"""(-priority, position, sequence number): the message with the smaller one comes first in the claim order."""


class Row(Struct, gc=False):
    """A message to settle or to move: the columns `row`, in order.

    Nobody changes one. It is not frozen because a batch makes thousands, and not being frozen halves the time that
    takes; a named tuple takes five times as long to make, and to read.
    """

    seq: int
    id: str
    queue: str
    status: int
    receipt: int | None
    attempts: int
    max_attempts: int | None
    expires_after: int
    received_at: int
    position: int
    bytes: int
    group_id: str | None
    failures: str | None
    dead_letter_queue: str | None
    source_queue: str | None
    ttl_ms: int | None
    processing_started_at: int | None
    kind: str | None
    """None for a message that never had a key."""
    priority: int

    @property
    def place(self) -> Place:
        return -self.priority, self.position, self.seq

    def expired(self, now_ms: int) -> bool:
        """True past its time to live, unless it is processing: its consumer may finish it (F7)."""
        return self.status != Status.PROCESSING and self.expires_after <= now_ms

    def failures_with(self, at_ms: int, reason: str | None) -> str:
        """The column `failures` with the current attempt added, which ended at `at_ms`. reason: None for none."""
        if self.failures is None:
            return _encode([(self.attempts, at_ms, reason)]).decode()
        failures = failed_again(read_failures(self.failures), Failure(self.attempts, at_ms, reason))
        return _encode([(each.attempt, each.at, each.reason) for each in failures]).decode()


check_order(columns("engine", "row"), " ".join(Row.__struct_fields__))


def place_of(row: ReadyRow) -> Place:
    """The place of a ready message in the claim order."""
    return -row[PRIORITY], row[POSITION], row[SEQ]


def rows_of(rows: Iterable[tuple[Any, ...]]) -> list[Row]:
    """The messages of a statement that returns these columns."""
    return [Row(*row) for row in rows]


def clamped(number: int) -> int:
    """A number within the range of a column; a damaged row may contain any number."""
    return max(-limits.SEQUENCE_MAX, min(number, limits.SEQUENCE_MAX))


def read_failures(column: str | None) -> tuple[Failure, ...]:
    if column is None:
        return ()
    return tuple(Failure(*each) for each in _FAILURES.decode(column))


def shown(read: Callable[[str | None], ShownT], column: str | None) -> ShownT:
    """The value of a JSON column for display; empty if it is damaged, so that the rest can still be shown."""
    try:
        return read(column)
    except msgspec.MsgspecError:
        return read(None)


def shown_as(kind: type[InfoT]) -> Callable[[Sequence[Any]], InfoT]:
    """A function that makes a `kind` from a row whose columns are its members, in order."""
    members = kind.__struct_fields__
    attributes, group, failures = map(members.index, ("attributes", "group", "failures"))
    status = members.index("status") if "status" in members else None
    keyed = members.index("keyed") if "keyed" in members else None

    def made(row: Sequence[Any]) -> InfoT:
        values = list(row)
        if status is not None:
            values[status] = STATUS_NAMES[row[status]]
        if keyed is not None:
            values[keyed] = shown(read_keyed, row[keyed])
        values[attributes] = shown(read_attributes, row[attributes]) or {}
        values[group] = row[group] or None
        values[failures] = shown(read_failures, row[failures])
        return kind(*values)

    return made


def read_keyed(column: str | None) -> KeyInfo | None:
    return None if column is None else KeyInfo(*_KEY.decode(column))


def write_attributes(attributes: dict[str, str] | None) -> str | None:
    return _encode(attributes).decode() if attributes else None


def read_attributes(column: str | None) -> dict[str, str] | None:
    return None if column is None else _ATTRIBUTES.decode(column)


def write_settings(settings: QueueSettings) -> str:
    return _encode(settings).decode()


def read_settings(column: str) -> QueueSettings:
    return _SETTINGS.decode(column)
