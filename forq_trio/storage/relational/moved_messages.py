"""What a read does not find in the table: leased messages that are only in the pages of their lease
(operations/moved_pages.py).

A method that raises MessagesMoved names the sequences between which messages have to be put back before the read is
repeated.
"""

from typing import NamedTuple

from forq_trio.storage.reader import MessagesMoved
from forq_trio.storage.relational.statements import Query


class MovedMessages(NamedTuple):
    """Tells whether a read would miss moved messages. It is asked in the snapshot of the read."""

    query: Query

    def find(self, queue: str, message_id: str) -> None:
        """Raises MessagesMoved if a page has this message, which the table does not have."""
        for first_seq, last_seq in self.query("moved_id", queue, message_id):
            raise MessagesMoved(queue, first_seq - 1, last_seq + 1)

    def newest(self, queue: str, before: int, above: int, most: int) -> None:
        """Raises MessagesMoved if a read of the newest messages between two sequences, both excluded, at most so many,
        would miss some."""
        if self._may_have(queue, before, above):
            ((found, lowest),) = self.query("scanned", queue, before, above, most)
            self.newest_leased(queue, before, lowest if found == most else above, most)

    def newest_leased(self, queue: str, before: int, above: int, most: int) -> None:
        """The same as `newest`, for a read of leased messages alone."""
        if self._may_have(queue, before, above):
            raise MessagesMoved(queue, self._newest_end(queue, before, above, most), before)

    def between(self, queue: str, before: int, above: int) -> bool:
        """Whether any are between two sequences, both excluded. Raises MessagesMoved where only a page's list tells."""
        for first_seq, last_seq, *_ in self.query("newest_moved", queue, before, 1):
            if first_seq <= above < last_seq:
                raise MessagesMoved(queue, above, before)
            return bool(first_seq > above)
        return False

    def _may_have(self, queue: str, before: int, above: int) -> bool:
        return any(last_seq > above for _, last_seq, *_ in self.query("newest_moved", queue, before, 1))

    def _newest_end(self, queue: str, before: int, above: int, most: int) -> int:
        """The sequence above which the newest `most` moved messages are; `above` where there are fewer."""
        pages = self.query("newest_moved", queue, before, most)
        for first_seq, last_seq, messages, *_ in pages:
            if last_seq <= above or most <= 0:
                break
            before, most = first_seq, most - messages
        return max(above, int(before) - 1)

    def oldest(self, queue: str, after: int, until: int, most: int) -> None:
        """Raises MessagesMoved if a read of the oldest messages behind a sequence, up to another, at most so many,
        would miss some."""
        end = after
        for first_seq, last_seq, messages, *_ in self.query("oldest_moved", queue, after, most):
            if first_seq > until or most <= 0:
                break
            end, most = last_seq, most - messages
        if end > after:
            raise MessagesMoved(queue, after, int(end) + 1)

    def behind(self, queue: str, after: int, until: int) -> bool:
        """Whether any are behind a sequence, up to another."""
        return any(first_seq <= until for first_seq, *_ in self.query("oldest_moved", queue, after, 1))

    def last(self, queue: str) -> int:
        """The highest sequence of a moved message, 0 for none."""
        return max([last_seq for last_seq, _ in self.query("last_moved", queue)], default=0)
