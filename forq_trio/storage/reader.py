"""The interface of the read-only connections of all storage engines."""

from collections.abc import Sequence
from typing import Protocol

from forq_trio.model.commands import Command
from forq_trio.model.dead_letters.searches import (
    DeadLetterPage,
    ErrorGroups,
    ErrorTexts,
    ExportBounds,
    ExportRows,
    FoundRows,
    ListedState,
    MatchCount,
    MessageFilter,
    MessagePage,
)
from forq_trio.model.logs.history import FinishedMessage, FinishedPage, Outcome
from forq_trio.model.logs.types import LogLines, LogName
from forq_trio.model.messages.set_aside import SetAside
from forq_trio.model.messages.types import KeyedMessage, MessageInfo, QueueCounts
from forq_trio.model.publishing.types import PublishedVersion
from forq_trio.model.results.types import MessageResult
from forq_trio.model.schedules.types import SavedRun, Schedule, SchedulePage
from forq_trio.model.server.database_state import DatabaseReading


class ReadAfter(Exception):
    """A read would miss messages unless a command has run first: run that command, then read again."""

    def __init__(self, command: Command[None]) -> None:
        super().__init__(command)
        self.command = command


class Reader(Protocol):
    """A read-only connection, used by one thread at a time. Every method sees one committed state.

    A page has at most `limit` messages. It has fewer if more would exceed BROWSE_PAGE_BYTES_MAX together, but at least
    one if there is one. A read of leased messages may raise ReadAfter.
    """

    def database(self) -> DatabaseReading | None:
        """What the database server reports about itself; None if the database is a file."""
        ...

    def queues(self) -> dict[str, QueueCounts]:
        """The counts of all known queues, by name."""
        ...

    def queue(self, queue: str) -> tuple[QueueCounts, int | None]:
        """The counts of one queue (zeros if nobody used it), and when its oldest ready message was received."""
        ...

    def message(self, queue: str, message_id: str) -> MessageInfo | None: ...

    def message_result(self, queue: str, message_id: str) -> MessageResult | None:
        """How a message ended that was sent to `queue`, or that it waits; None if nothing is known of it."""
        ...

    def keyed_message(self, queue: str, key: str, kind: str) -> KeyedMessage | None:
        """The pending message of a key; None for none."""
        ...

    def keyed_messages(
        self, queue: str, prefix: str, kind: str | None, after: tuple[str, str] | None, limit: int
    ) -> tuple[list[MessageInfo], tuple[str, str] | None]:
        """Pending messages whose keys begin with `prefix`, by kind and key; and the `after` of the next page.

        kind: None for all. after: kind and key of the last message of the previous page, None for the first page. A
        page looks at no more than KINDS_LOOKED_AT_MAX kinds, so it may have few messages although more follow.
        """
        ...

    def count_keys(self, queue: str, most: int) -> dict[str, int]:
        """How many pending messages with a key a queue has, by kind. Counts the first `most`, by kind and key."""
        ...

    def peek(self, queue: str, limit: int) -> list[MessageInfo]:
        """The next ready messages in claim order."""
        ...

    def browse(self, queue: str, before_sequence: int | None, limit: int) -> list[MessageInfo]:
        """Messages with a sequence number below `before_sequence` (None: all), newest first."""
        ...

    def peek_shuffled(self, queue: str, limit: int) -> list[MessageInfo]:
        """Random ready messages, none of them twice."""
        ...

    def search(
        self, queue: str, wanted: MessageFilter, before_sequence: int | None, limit: int, scan_max: int
    ) -> DeadLetterPage:
        """The messages that match, newest first, below `before_sequence`; reads no more than `scan_max` messages."""
        ...

    def list_messages(self, queue: str, state: ListedState, cursor: str | None, limit: int) -> MessagePage:
        """At most `limit` messages in this state: ready ones in claim order, others newest first.

        cursor: the `next` of the page before, None for the first; raises OutOfRange for one that is malformed.
        """
        ...

    def find_messages(
        self, queue: str, wanted: MessageFilter, before_sequence: int | None, limit: int, scan_max: int
    ) -> FoundRows:
        """The messages that `search` finds, but as rows and whatever their size."""
        ...

    def count_messages(
        self, queue: str, wanted: MessageFilter, before_sequence: int | None, scan_max: int
    ) -> MatchCount:
        """How many `find_messages` without a limit would find."""
        ...

    def error_groups(self, queue: str, before_sequence: int | None, scan_max: int) -> ErrorGroups:
        """The newest `scan_max` messages below `before_sequence`, by reason and fingerprint of the error."""
        ...

    def error_texts(self, queue: str, wanted: MessageFilter, scan_max: int, limit: int) -> ErrorTexts:
        """The errors like `wanted.error_like` in the newest `scan_max` messages, only of `wanted.reason` if given."""
        ...

    def log_lines(
        self, log: LogName, after: int, until: int | None, limit: int, queue: str | None
    ) -> LogLines:
        """At most `limit` lines of a log, with ids above `after` and up to `until` (None: the newest).

        queue: None for all. A page of events ends at EVENT_LINES_BYTES_MAX and looks at no more than EVENTS_SCAN_MAX
        events; a page of the history ends at about BROWSE_PAGE_BYTES_MAX. It has at least one line if there is one.
        """
        ...

    def message_events(self, queue: str, message_id: str) -> bytes:
        """The latest MESSAGE_EVENTS_MAX events of a message as NDJSON; none if it was never in `queue`."""
        ...

    def queues_of(self, sequences: Sequence[int]) -> dict[int, str]:
        """The queue of each of these messages, by sequence number; messages that do not exist are left out."""
        ...

    def export(self, queue: str, after: int, until: int, limit: int) -> ExportRows:
        """Messages with sequence numbers above `after` and up to `until`, in that order, as lines of JSON."""
        ...

    def export_bounds(self, queue: str, count: int) -> ExportBounds:
        """Divide the stored messages into at most `count` ranges of equal size."""
        ...

    def apps_named(self, app: str) -> list[PublishedVersion]:
        """The apps of a name, in the order in which they published last."""
        ...

    def list_apps(self, after: int, limit: int) -> list[tuple[int, PublishedVersion]]:
        """Apps with a number above `after`, as (number, app), in the order in which they published last."""
        ...

    def schedule(self, name: str, runs: int) -> tuple[Schedule, tuple[SavedRun, ...]] | None:
        """A schedule with its latest `runs` runs, newest first."""
        ...

    def schedule_of_queue(self, queue: str) -> str | None:
        """The name of a schedule that names this queue, None if there is none. Reads all schedules."""
        ...

    def schedules(self, after: str, limit: int) -> SchedulePage:
        """At most `limit` schedules with names after `after` ("" for the first page), sorted by name."""
        ...

    def find_finished(
        self,
        queue: str,
        wanted: MessageFilter,
        outcome: Outcome | None,
        before: int | None,
        limit: int,
        scan_max: int,
    ) -> FinishedPage:
        """The finished messages that match, newest first, with ids below `before`; reads at most `scan_max`.

        Here the reason of the filter is that of the history, its times are those when messages ended, and `status` and
        `above_sequence` are ignored.
        """
        ...

    def finished(self, queue: str, message_id: str) -> FinishedMessage | None: ...

    def set_aside(self, after: int, limit: int) -> list[SetAside]:
        """Messages of forq.send that were set aside, with ids above `after`, in that order; never any in SQLite."""
        ...

    def count_set_aside(self) -> tuple[int, int]:
        """How many messages are set aside, and the highest id (0 if there are none)."""
        ...

    def sent_figures(self, most: int) -> tuple[int, int, int | None]:
        """Of forq.send: how many messages are set aside, how many wait (`most` at most), and the lowest id of these."""
        ...

    def lease_pages(self, queue: str, consumer: str, number: int, first: int, count: int) -> list[bytes]:
        """The lines of up to `count` pages of a consumer's lease from page `first` on, in order, up to the first gap.

        Together they have no more than CONSUMER_READ_BYTES_MAX bytes, unless the first page alone has more.
        """
        ...

    def interrupt(self) -> None:
        """Make a read that runs in another thread fail with ReadDeadlineExceeded. May block, for some seconds."""
        ...

    def close(self) -> None: ...
