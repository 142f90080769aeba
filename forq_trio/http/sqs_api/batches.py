"""Batches: up to ten entries with ids of their sender, each of which fails alone."""

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from forq_trio.http.sqs_api.errors import (
    EMPTY_BATCH,
    IDS_NOT_DISTINCT,
    INVALID_ENTRY_ID,
    TOO_MANY_ENTRIES,
    SqsError,
    missing,
)
from forq_trio.http.sqs_api.shapes import FailedEntry
from forq_trio.model import limits

_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


class BatchEntry(Protocol):
    @property
    def id(self) -> str | None: ...


EntryT = TypeVar("EntryT", bound=BatchEntry)


def check_entries(entries: Sequence[EntryT] | None, operation: str) -> list[tuple[str, EntryT]]:
    """The entries with their ids; raises SqsError for a batch that is refused whole."""
    if not entries:
        text = f"There should be at least one {operation}RequestEntry in the request."
        raise SqsError(EMPTY_BATCH, text)
    if len(entries) > limits.SQS_BATCH_MAX:
        raise too_many(len(entries))
    seen: dict[str, EntryT] = {}
    for entry in entries:
        if entry.id is None:
            raise missing(f"{operation}RequestEntry.Id")
        if _ID.fullmatch(entry.id) is None:
            raise SqsError(
                INVALID_ENTRY_ID,
                "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most"
                " 80 letters long.",
            )
        if entry.id in seen:
            raise SqsError(IDS_NOT_DISTINCT, f"Id {entry.id} repeated.")
        seen[entry.id] = entry
    return list(seen.items())


def too_many(count: int) -> SqsError:
    """A batch has so many entries."""
    text = f"Maximum number of entries per request are {limits.SQS_BATCH_MAX}. You have sent {count}."
    return SqsError(TOO_MANY_ENTRIES, text)


def failed(entry_id: str, error: SqsError) -> FailedEntry:
    """The result of an entry that failed."""
    return FailedEntry(entry_id, error.is_senders_fault, error.shape.code, error.message)
