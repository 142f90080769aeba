"""Pages of queues: a list of queues is answered in parts, so that an answer has a bound however many there are."""

from collections.abc import Iterable
from heapq import nsmallest

from forq_trio.model.access import Principal, Scope


def page_of(
    names: Iterable[str], principal: Principal, after: str, limit: int
) -> tuple[list[str], str | None]:
    """The first `limit` queues by name behind `after` that may be browsed; and the last, None if none follows it."""
    found = nsmallest(
        limit + 1, (name for name in names if name > after and principal.may(Scope.BROWSE, name))
    )
    if len(found) <= limit:
        return found, None
    return found[:limit], found[limit - 1]
