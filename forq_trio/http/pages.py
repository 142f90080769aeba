"""Pages of queues: a list of queues is answered in parts, so that an answer has a bound however many there are."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import islice

from forq_trio.model.access import Principal, Scope


def page_of(
    names: Iterable[str], principal: Principal, after: str, limit: int
) -> tuple[list[str], str | None]:
    """The first `limit` queues by name behind `after` that may be browsed; and the last, None if none follows it."""
    by_name = sorted(names)
    behind = islice(by_name, bisect_right(by_name, after), None)
    found = list(islice((name for name in behind if principal.may(Scope.BROWSE, name)), limit + 1))
    if len(found) <= limit:
        return found, None
    return found[:limit], found[limit - 1]
