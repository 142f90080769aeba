"""The search of the workbench: counts matching messages among the newest, step by step, so that no request takes long.

The browser chains the steps: each answer has the state in its link, and the next request continues from there. Rows
come with requests of their own, and never from below the part that was counted, so that both agree.
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
    """How far a search has come. found: how many match. held: how many of these a consumer has in process.

    depth: how many messages to read. down: the sequence number below which it continues, None at the end of the queue.
    oldest_at: when the oldest message that was read became a dead letter. begun: False before the first step.
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
        """The sequence number above which all messages were read; None if the whole queue was."""
        return None if self.down is None else self.down - 1

    def query(self) -> dict[str, object]:
        """The state as parameters of a URL or a form."""
        return {**asdict(self), "begun": "1" if self.begun else ""}


def read_search(given: Parameters) -> Search:
    """The state in a request."""

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


def everything(broker: Broker, queue: str) -> Search:
    """The result of an empty filter, which needs no search."""
    counts = broker.known.counts_of(queue)
    return Search(found=counts.total, held=counts.processing, total=counts.total, begun=True)


async def step(broker: Broker, queue: str, wanted: Filter, search: Search) -> Search:
    """The search, one step further."""
    if wanted.is_empty:
        return everything(broker, queue)
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
    """Count again in the part that was searched, to compare the result with the confirmed number.

    At most the newest 100,000 messages are counted. If the search went deeper, this assumes that as many matches are
    gone as the queue has shrunk by.
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
    """Whether a count differs by at most 1 % from the one that was shown."""
    return abs(count - shown) * 100 <= shown
