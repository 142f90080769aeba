"""What the offers of a batch did to contents: which replaced which, and which became a message."""

from typing import NamedTuple

from reliability.whole_app.causes import Causes
from reliability.whole_app.deeds import Deeds
from reliability.whole_app.stores import Stored, Table
from reliability.whole_app.violations import Clause, hold


class Held(NamedTuple):
    """What a key has. seq: of its message; row: that message before the batch; None for none."""

    seq: int | None = None
    content: str | None = None
    waiting: str | None = None
    row: Stored | None = None


class Offers:
    """One batch. replaced: contents that newer offers of their keys replaced. promoted: sequences of messages that
    waited behind others. made: contents that were offered, with the sequence of the message they are of."""

    def __init__(self, deeds: Deeds, before: Table, after: Table) -> None:
        self.replaced: set[str] = set()
        self.made: dict[str, int] = {}
        self._deeds = deeds
        self._after = after
        self._held = {
            (row.queue, row.key): Held(row.seq, row.content, row.waiting, row)
            for row in before.values()
            if row.key is not None
        }
        self._waited = {held.waiting: key for key, held in self._held.items() if held.waiting is not None}
        self._contents: dict[int, str] = {}
        for queue, key, offering, offered in deeds.offers:
            self._take((queue, key), offering.content, offered.sequence, once_more=offered.once_more)
        self.promoted = {
            row.seq: row.content
            for seq, row in after.items()
            if seq not in before and row.content in self._waited
        }

    def _take(self, key: tuple[str, str], content: str, seq: int, *, once_more: bool) -> None:
        held = self._held.get(key, Held())
        self.made[content] = seq
        if once_more:
            self._replace(held.waiting)
            self._waited[content] = key
            self._held[key] = held._replace(waiting=content)
            return
        if seq == held.seq:
            self._replace(held.content)
        self._replace(held.waiting)
        self._contents[seq] = content
        self._held[key] = Held(seq, content, None, held.row)

    def _replace(self, content: str | None) -> None:
        if content is not None:
            self.replaced.add(content)
            self._waited.pop(content, None)

    def content_of(self, row: Stored) -> str:
        """The content of a message as the offers left it."""
        return self._contents.get(row.seq, row.content)

    def gone(self, causes: Causes, before: Table) -> dict[str, str]:
        """Why contents of offers are not there any more whose message is new in this batch, or that waited."""
        stored = {content for row in self._after.values() for content in (row.content, row.waiting)}
        found = dict.fromkeys(self.replaced, "updated")
        hold(Clause.ANSWER, not self.replaced & stored, "replaced, and stored: {}", self.replaced & stored)
        for (queue, key), held in self._held.items():
            new = held.seq not in before and held.content is not None
            for content, waited in ((held.content if new else None, False), (held.waiting, True)):
                if content is not None and content not in stored:
                    found[content] = causes.of_lost_offer(queue, key, held.row, waited=waited)
        return found
