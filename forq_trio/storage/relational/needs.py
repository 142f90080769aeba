"""Checks whether the messages that a read needs are in the table: a leased message may be only in its lease's page.

Each method that raises ReadAfter names the command that moves the missing messages back (operations/moved_pages.py).
"""

from typing import NamedTuple

from forq_trio.model.commands import MoveBack
from forq_trio.storage.reader import ReadAfter
from forq_trio.storage.relational.statements import Query


class Needs(NamedTuple):
    """The checks of one read, inside its snapshot."""

    query: Query

    def message(self, queue: str, message_id: str) -> None:
        """Check for one message that is not in the table. Raises ReadAfter if a page has it."""
        for first_seq, last_seq in self.query("moved_id", queue, message_id):
            raise ReadAfter(MoveBack(queue, first_seq - 1, last_seq + 1))

    def newest(self, queue: str, before: int, above: int, most: int) -> None:
        """Check for the newest `most` messages between two sequence numbers, both excluded. Raises ReadAfter if some
        are missing."""
        if self._may_have(queue, before, above):
            ((found, lowest),) = self.query("scanned", queue, before, above, most)
            self.newest_leased(queue, before, lowest if found == most else above, most)

    def newest_leased(self, queue: str, before: int, above: int, most: int) -> None:
        """The same as `newest`, but only for leased messages."""
        if self._may_have(queue, before, above):
            raise ReadAfter(MoveBack(queue, self._newest_end(queue, before, above, most), before))

    def has_between(self, queue: str, before: int, above: int) -> bool:
        """Whether pages have messages between two sequence numbers, both excluded. Raises ReadAfter if only the lists
        of their messages can tell."""
        for first_seq, last_seq, *_ in self.query("newest_moved", queue, before, 1):
            if first_seq <= above < last_seq:
                raise ReadAfter(MoveBack(queue, above, before))
            return bool(first_seq > above)
        return False

    def _may_have(self, queue: str, before: int, above: int) -> bool:
        return any(last_seq > above for _, last_seq, *_ in self.query("newest_moved", queue, before, 1))

    def _newest_end(self, queue: str, before: int, above: int, most: int) -> int:
        """The sequence number above which the newest `most` moved messages are; `above` if there are fewer."""
        pages = self.query("newest_moved", queue, before, most)
        for first_seq, last_seq, messages, *_ in pages:
            if last_seq <= above or most <= 0:
                break
            before, most = first_seq, most - messages
        return max(above, int(before) - 1)

    def oldest(self, queue: str, after: int, until: int, most: int) -> None:
        """Check for the oldest `most` messages with sequence numbers above `after`, up to `until`. Raises ReadAfter if
        some are missing."""
        end = after
        for first_seq, last_seq, messages, *_ in self.query("oldest_moved", queue, after, most):
            if first_seq > until or most <= 0:
                break
            end, most = last_seq, most - messages
        if end > after:
            raise ReadAfter(MoveBack(queue, after, int(end) + 1))

    def has_behind(self, queue: str, after: int, until: int) -> bool:
        """Whether pages have messages with sequence numbers above `after`, up to `until`."""
        return any(first_seq <= until for first_seq, *_ in self.query("oldest_moved", queue, after, 1))

    def ends_of_parts(self, queue: str, size: int, count: int, newest: int) -> list[int] | None:
        """The last message of each of at most `count` parts of a queue; None if the table has all messages.

        size: of a part, in messages; a page is never split. newest: the newest message in the table.
        """
        last = max([last_seq for last_seq, _ in self.query("last_moved", queue)], default=0)
        if not last:
            return None
        ends = [int(end) for (end,) in self.query("bounds_with_moved", queue, size)[:count]]
        return [*ends[:-1], max(newest, last)]
