"""A stored message as the engine looks at it, and how its JSON columns are written and read."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from forq_trio.model.messages import Failure, Status
from forq_trio.model.queue_settings import QueueSettings
from forq_trio.storage.rules import failed_again

ShownT = TypeVar("ShownT")

_FAILURES = msgspec.json.Decoder(list[tuple[int, int, str | None]])
_ATTRIBUTES = msgspec.json.Decoder(dict[str, str])
_SETTINGS = msgspec.json.Decoder(QueueSettings)
_encode = msgspec.json.Encoder().encode


class Row(NamedTuple):
    """A message to settle or to move: the columns of `find_by_sequence`, in order."""

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

    def expired(self, now_ms: int) -> bool:
        """True past its time to live, unless it is processing: its consumer may finish it (F7)."""
        return self.status != Status.PROCESSING and self.expires_after <= now_ms

    def failures_with(self, at_ms: int, reason: str | None) -> str:
        """The column `failures` with the present attempt added, which ended at `at_ms`. reason: None for none."""
        if self.failures is None:
            return _encode([(self.attempts, at_ms, reason)]).decode()
        failures = failed_again(read_failures(self.failures), Failure(self.attempts, at_ms, reason))
        return _encode([(each.attempt, each.at, each.reason) for each in failures]).decode()


def rows_of(rows: Sequence[tuple[object, ...]]) -> list[Row]:
    """The messages of a statement that returns these columns."""
    return [Row._make(row) for row in rows]


def read_failures(column: str | None) -> tuple[Failure, ...]:
    if column is None:
        return ()
    return tuple(Failure(*each) for each in _FAILURES.decode(column))


def shown(read: Callable[[str | None], ShownT], column: str | None) -> ShownT:
    """What a JSON column says to somebody who looks; nothing where it is damaged, so that the rest can be seen."""
    try:
        return read(column)
    except msgspec.MsgspecError:
        return read(None)


def write_attributes(attributes: dict[str, str] | None) -> str | None:
    return _encode(attributes).decode() if attributes else None


def read_attributes(column: str | None) -> dict[str, str] | None:
    return None if column is None else _ATTRIBUTES.decode(column)


def write_settings(settings: QueueSettings) -> str:
    return _encode(settings).decode()


def read_settings(column: str) -> QueueSettings:
    return _SETTINGS.decode(column)
