"""What clients of a real server were promised, and how its file and its backups are held against that.

Every message has a content of its own, by which it is known. Clients write down what they ask for before they ask, and
what they were answered as soon as they are; so at any moment the file must lie between the two.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import apsw

from forq_trio.model.messages.types import Receipt
from forq_trio.storage.sqlite.files.check import check_file, verify_backup

LOAD = "load"
FAILING = "failing"
FAILING_ATTEMPTS = 2

_ROWS = """
SELECT content, seq, queue, attempts, receipt, failure_reason, source_attempts FROM messages
"""


class Row(NamedTuple):
    """A stored message."""

    content: str
    seq: int
    queue: str
    attempts: int
    receipt: int | None
    reason: str | None
    source_attempts: int | None


@dataclass
class Delivered:
    """The latest delivery of a message. current: nobody asked for anything that would end its receipt."""

    attempts: int
    receipt: str
    current: bool = True


@dataclass(frozen=True)
class Page:
    """The books as they were at one moment."""

    asked: int
    answered: frozenset[str]
    acked: frozenset[str]
    maybe_acked: frozenset[str]


@dataclass
class Books:
    """answered: contents whose send was answered with success. acked, maybe_acked: as confirmed, or as asked for.

    stale: receipts of deliveries that were followed by others. claimed: attempts in the file at the last check.
    """

    answered: set[str] = field(default_factory=set)
    acked: set[str] = field(default_factory=set)
    maybe_acked: set[str] = field(default_factory=set)
    delivered: dict[str, Delivered] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)
    claimed: dict[str, int] = field(default_factory=dict)
    asked: int = 0
    backups: int = 0

    def next_content(self, queue: str = LOAD) -> str:
        self.asked += 1
        return f"{queue} {self.asked} äöü😀"

    def received(self, content: str, attempts: int, receipt: str) -> None:
        """A message came: none that is done with, and each time as one attempt more than the last time."""
        assert content not in self.acked, f"{content} was acknowledged and came again"
        before = self.delivered.get(content)
        if before is not None:
            assert attempts > before.attempts, f"{content} came twice as attempt {attempts}"
            self.stale.append(before.receipt)
        self.delivered[content] = Delivered(attempts, receipt)

    def page(self) -> Page:
        return Page(self.asked, frozenset(self.answered), frozenset(self.acked), frozenset(self.maybe_acked))

    def check(self, database: Path, scratch: Path) -> int:
        """Compare with a copy of the file as the process left it, log included; returns how many are stored."""
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        for path in database.parent.glob(database.name + "*"):
            shutil.copy(path, scratch)
        copy = scratch / database.name
        rows = _rows(copy)
        report = check_file(str(copy))
        assert report.problems == []
        assert report.messages == len(rows)
        _check_between(self.page(), self.page(), rows)
        for row in rows.values():
            self._check_attempts(row)
        self.claimed = {row.content: row.attempts for row in rows.values()}
        return len(rows)

    def _check_attempts(self, row: Row) -> None:
        """An answered claim is in the file; one that was not answered may be, once per message and kill."""
        if row.queue == f"{FAILING}-dlq":
            assert (row.attempts, row.reason) == (0, "max_attempts_reached")
            assert row.source_attempts == FAILING_ATTEMPTS
            return
        assert row.queue == row.content.split()[0]
        last = self.delivered.get(row.content)
        known = max(0 if last is None else last.attempts, self.claimed.get(row.content, 0))
        assert known <= row.attempts <= known + 1, f"{row}: {known} attempts were known"
        if last is not None and last.current:
            if row.attempts == last.attempts:
                assert Receipt.parse(last.receipt) == (row.seq, row.receipt), "the receipt is another one"
            else:
                last.current = False

    def check_backup(self, backup: Path, begun: Page) -> None:
        """A backup that was begun when the books were `begun` and has just ended is a state between the two."""
        report = verify_backup(str(backup))
        assert report.problems == []
        rows = _rows(backup)
        assert report.messages == len(rows)
        _check_between(begun, self.page(), rows)
        self.backups += 1


def _rows(database: Path) -> dict[str, Row]:
    """The messages of a file by content. A content stored twice is an error."""
    connection = apsw.Connection(str(database))
    try:
        found = [Row(*values) for values in connection.execute(_ROWS)]
    finally:
        connection.close()
    rows = {row.content: row for row in found}
    assert len(rows) == len(found), "a message is stored twice"
    return rows


def _check_between(begun: Page, ended: Page, stored: Iterable[str]) -> None:
    """`stored` has what was promised when it was begun, and nothing nobody had asked for when it had ended."""
    contents = set(stored)
    lost = begun.answered - ended.acked - ended.maybe_acked - contents
    assert lost == set(), f"{len(lost)} answered sends are gone: {sorted(lost)[:3]}"
    assert not begun.acked & contents, "acknowledged messages are back"
    invented = {content for content in contents if int(content.split()[1]) > ended.asked}
    assert invented == set(), "messages that nobody sent"
