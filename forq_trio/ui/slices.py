"""Long work of the event loop, in slices: the UI does one slice at a time."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from random import sample
from typing import Any, TypeVar

import trio

AT_ONCE = 250
"""How many queues a slice processes, in about a millisecond."""

_SAMPLE_MAX = 2_000
_SAMPLED = 8

A = TypeVar("A")
B = TypeVar("B")


class Slices:
    """One task of the UI at a time does a slice, so everything else runs between any two slices.

    lock: `async with` it, one slice.
    """

    def __init__(self) -> None:
        self.lock = trio.Lock()

    async def over(self, items: Sequence[A], do: Callable[[Sequence[A]], Iterable[B]]) -> list[B]:
        """Call `do` with slices of the items; returns what it returned, one after the other."""
        found: list[B] = []
        for start in range(0, len(items), AT_ONCE):
            async with self.lock:
                found += do(items[start : start + AT_ONCE])
        return found

    async def in_order(self, items: Sequence[Any], start: int = 0, stop: int | None = None) -> list[Any]:
        """Return what `sorted(items)[start:stop]` would; no two items are equal.

        A sort blocks all threads. So the items are spread over buckets, whose bounds come from a sample, and only the
        needed buckets are sorted, one by one.
        """
        stop = len(items) if stop is None else stop
        async with self.lock:
            drawn = sample(items, min(len(items), _SAMPLE_MAX, _SAMPLED * (len(items) // AT_ONCE)))
            bounds = sorted(drawn)[_SAMPLED - 1 :: _SAMPLED]
        buckets: list[list[Any]] = [[] for _ in range(len(bounds) + 1)]

        def spread(part: Sequence[Any]) -> Iterable[Any]:
            for item in part:
                buckets[bisect_right(bounds, item)].append(item)
            return ()

        await self.over(items, spread)
        found: list[Any] = []
        first = 0
        for bucket in buckets:
            if first < stop and first + len(bucket) > start:
                async with self.lock:
                    bucket.sort()
                found += bucket[max(0, start - first) : stop - first]
            first += len(bucket)
        return found
