"""Lists of queues are answered in pages, so that the length of an answer has a bound."""

from bisect import bisect_right
from collections.abc import Sequence

from forq_trio.model import limits
from forq_trio.model.access.types import Principal, Scope


def page_of(
    names: Sequence[str], principal: Principal, after: str, limit: int
) -> tuple[list[str], str | None]:
    """The first `limit` queues behind `after` that may be browsed, and the `after` of the next page, None at the end.

    names: sorted. A page looks at QUEUES_LOOKED_AT_MAX of them, so one with a next page may have fewer than `limit`.
    """
    start = bisect_right(names, after)
    looked_at = names[start : start + limits.QUEUES_LOOKED_AT_MAX]
    found: list[str] = []
    for index, name in enumerate(looked_at):
        if principal.may(Scope.BROWSE, name):
            found.append(name)
            if len(found) == limit:
                looked_at = looked_at[: index + 1]
                break
    at_end = start + len(looked_at) == len(names)
    return found, None if at_end else looked_at[-1]
