"""The search of the workbench: counts what matches in the newest messages, step by step, so that no request takes long.

The browser chains the steps: each answer has the state in its link, and the next request goes on there. Rows come with
requests of their own, never below what the count has reached, so that both say the same.
"""

from msgspec import Struct
from msgspec.structs import asdict, replace

from forq_trio.broker.broker import Broker
from forq_trio.model import limits
from forq_trio.ui.workbench.filter import Filter, Parameters, read_number

SPAN = 100_000
"""How many messages a search reads before it asks whether to continue."""
RECOUNT_STEPS_MAX = 10


class Search(Struct, frozen=True):
    """How far a search got. found: how many match, held: how many of them a consumer holds.

    depth: how many messages it is to look at; down: the sequence below which it goes on, None at the end of the queue.
    oldest_at: when the oldest one that was looked at became a dead letter. begun: False before the first step.
    """

    depth: int = SPAN
    found: int = 0
    held: int = 0
    searched: int = 0
    total: int = 0
    down: int | None = None
    oldest_at: int | None = None
    begun: bool = False

    @property
    def at_end(self) -> bool:
        return self.begun and self.down is None

    @property
    def searching(self) -> bool:
        return not self.at_end and self.searched < self.depth

    @property
    def movable(self) -> int:
        return max(0, self.found - self.held)

    @property
    def above(self) -> int | None:
        """The sequence above which all was looked at; None where that is the whole queue."""
        return None if self.down is None else self.down - 1

    def query(self) -> dict[str, object]:
        """The state as parameters of a URL or a form."""
        return {**asdict(self), "begun": "1" if self.begun else ""}


def read_search(given: Parameters) -> Search:
    """The state that a request has."""

    def number(name: str) -> int:
        return read_number(given, name, limits.SEQUENCE_MAX)

    return Search(
        depth=number("depth") or SPAN,
        found=number("found"),
        held=number("held"),
        searched=number("searched"),
        total=number("total"),
        down=number("down") or None,
        oldest_at=number("oldest_at") or None,
        begun=given.get("begun", "") == "1",
    )


async def step(broker: Broker, queue: str, wanted: Filter, search: Search) -> Search:
    """The search, one step further."""
    if not search.searching:
        return search
    scan_max = min(limits.SEARCH_SCAN_MAX, search.depth - search.searched)
    counted = await broker.lists.count_messages(
        queue, wanted.question(), before_sequence=search.down, scan_max=scan_max
    )
    return Search(
        search.depth,
        search.found + counted.count,
        search.held + counted.processing,
        search.searched + counted.searched,
        counted.total,
        counted.next_before,
        counted.oldest_at or search.oldest_at,
        True,
    )


async def recount(broker: Broker, queue: str, wanted: Filter, search: Search) -> Search:
    """What matches now where the search looked, to compare it with what was confirmed.

    Counts at most the newest 100,000 again; where the search went deeper, as many are gone as the queue has shrunk by.
    """
    counts = broker.known.counts_of(queue)
    if wanted.is_empty and search.at_end:
        return replace(search, found=counts.total, held=counts.processing, total=counts.total)
    found = held = 0
    down: int | None = None
    for _ in range(RECOUNT_STEPS_MAX):
        counted = await broker.lists.count_messages(
            queue, wanted.question(search.above), before_sequence=down
        )
        found += counted.count
        held += counted.processing
        down = counted.next_before
        if down is None:
            return replace(search, found=found, held=held, total=counted.total)
    gone = max(0, search.total - counts.total)
    return replace(search, found=max(found, search.found - gone), held=held, total=counts.total)


def is_near(count: int, shown: int) -> bool:
    """True if a count is at most 1 % off the one that was shown."""
    return abs(count - shown) * 100 <= shown
