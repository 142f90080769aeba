"""Filters and results of searches and lists of messages."""

from typing import Literal, NamedTuple, Self

from msgspec import Struct

from forq_trio.model.keys.types import KeyInfo
from forq_trio.model.messages.types import MessageInfo, Status, StatusName
from forq_trio.model.values import Count, EpochMs, seen


class MessageFilter(Struct, frozen=True, gc=False):
    """Which messages to find; None and {} mean any."""

    reason: str | None = None  # why it was dead-lettered, exactly
    # this and the next: when it was dead-lettered, or else received (epoch ms, both included)
    since: int | None = None
    until: int | None = None
    attributes: dict[str, str] = {}  # the attributes that it must have, with their values
    text: str | None = None  # part of the content, exactly
    error: str | None = None  # its last error, exactly; "" for messages without one
    error_like: str | None = None  # a last error with the fingerprint of this one (fingerprints.py)
    status: Status | None = None
    above_sequence: int | None = None  # only messages with a greater sequence number; a search ends there


class AppliedFilter(Struct, frozen=True, rename="camel"):
    """The filter of a redrive, with times instead of ages; null for any."""

    reason: str | None  # only messages that were dead-lettered for this reason
    since: EpochMs | None  # dead-lettered at this time or later
    until: EpochMs | None  # dead-lettered at this time or before
    attributes: dict[str, str]  # only messages with these attributes
    text: str | None  # only messages whose content contains this
    error: str | None  # only messages with this last error; empty for those without one
    above_sequence: int | None  # only messages with a greater sequence number
    error_like: str | None = None  # only messages with this last error, apart from numbers, ids and addresses


class DeadLetterPage(Struct, frozen=True, rename="camel"):
    """A page of the messages that match, newest first."""

    messages: list[MessageInfo]  # as MessageInfo says, with their provenance
    searched: Count  # how many messages this page read
    total: Count  # how many the queue has
    next_before: int | None  # the `before` of the next page; null when the queue was searched to its end


PREVIEW_ELLIPSIS = "…"


class MessageRow(Struct, frozen=True, gc=False):
    """A message in a list: like `MessageInfo`, but without the content, attributes and failures.

    preview: the first PREVIEW_LENGTH_MAX characters of the content. If the searched text first occurs after more than
    PREVIEW_MATCH_LATE characters, it is an ellipsis and the characters around it, PREVIEW_LEAD of them before it.
    """

    id: str
    queue: str
    sequence: int
    status: StatusName
    preview: str
    attempts: int
    priority: int
    received_at: int
    process_after: int
    updated_at: int
    expires_after: int
    lease_until: int | None = None
    processing_started_at: int | None = None
    group: str | None = None
    max_attempts: int | None = None
    failure_reason: str | None = None
    last_error: str | None = None
    source_queue: str | None = None
    dead_lettered_at: int | None = None
    source_attempts: int | None = None
    bytes: int = 0
    keyed: KeyInfo | None = None

    @classmethod
    def of(cls, message: MessageInfo, preview: str) -> Self:
        """The row of a message that was read whole."""
        return seen(cls, message, preview=preview)


ListedState = Literal["all", "ready", "delayed", "processing", "held", "failed"]
"""Which messages of a queue a list shows."""


class MessagePage(Struct, frozen=True, gc=False):
    """A page of a list. next: the `cursor` of the next page, None at the end; it needs no escapes in a URL."""

    rows: list[MessageRow]
    next: str | None


class FoundRows(Struct, frozen=True, gc=False):
    """`DeadLetterPage` with rows, for any queue.

    oldest_at: when the oldest message that was read was dead-lettered, or else received.
    """

    rows: list[MessageRow]
    searched: int
    total: int
    next_before: int | None
    oldest_at: int | None


class MatchCount(Struct, frozen=True, gc=False):
    """How many of the messages that were read match, and how many of those are in process."""

    count: int
    processing: int
    searched: int  # these 4: as in `FoundRows`
    total: int
    next_before: int | None
    oldest_at: int | None


class ErrorGroup(Struct, frozen=True, gc=False):
    """Messages that were dead-lettered for the same reason, and whose last errors have the same fingerprint."""

    reason: str | None
    error: str | None  # the first of these errors in alphabetical order, None if they have none
    count: int
    last_at: int  # when the latest of them was dead-lettered, or else received
    errors: int  # how many different errors they have


class ErrorTexts(Struct, frozen=True, gc=False):
    """The most frequent of the errors that are alike, with how often each was found. different: how many there are."""

    texts: list[tuple[str, int]]
    different: int


class ErrorGroups(Struct, frozen=True, gc=False):
    """The groups of the messages that were read, the largest first, at most ERROR_GROUPS_MAX of them."""

    groups: list[ErrorGroup]
    searched: int  # these 3: as in `DeadLetterPage`
    total: int
    next_before: int | None
    # all further groups together, by reason, whatever their errors (`error` is None)
    others: list[ErrorGroup] = []


class ExportRows(NamedTuple):
    """A page of an export."""

    lines: bytes  # NDJSON
    next: int | None  # the sequence number after which to continue, None if nothing is left


class ExportBounds(Struct, frozen=True, gc=False):
    """Ranges of sequence numbers, above the first and up to the second, that cover `messages` stored messages."""

    bounds: list[tuple[int, int]]
    messages: int
