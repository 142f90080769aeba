"""Random ready messages of a queue, at a cost that does not depend on how many there are.

A short queue is drawn from exactly. In a long one a message is drawn in three steps, each a seek in the claim index:
one of the priorities present, a place between its first and its last, the message there or next to it. That favours
messages that stand after a gap and priorities with few messages; nobody who asks for any message minds.
"""

from collections.abc import Callable
from random import choice, randint, sample
from typing import Any

from forq_trio.model import limits

Query = Callable[..., list[Any]]
"""Runs a statement by its name and returns its rows."""


def draw(query: Query, queue: str, ready: int, count: int) -> list[int]:
    """The sequence numbers of up to `count` random ready messages, none twice. ready: how many there are."""
    if ready <= limits.SHUFFLE_EXACT_MAX:
        everything = [seq for (seq,) in query("ready_sequences", queue, limits.SHUFFLE_EXACT_MAX)]
        return sample(everything, min(count, len(everything)))
    drawn: dict[int, None] = {}
    priorities = [priority for (priority,) in query("ready_priorities", queue)]
    for _ in range(count * _TRIES):
        if len(drawn) == count or not priorities:
            break
        drawn[_draw_one(query, queue, choice(priorities))] = None
    # Only a very uneven queue gets here with too few; its first messages make up for them.
    for (seq,) in query("ready_sequences", queue, count) if len(drawn) < count else ():
        if len(drawn) < count:
            drawn[seq] = None
    return list(drawn)


_TRIES = 4


def _draw_one(query: Query, queue: str, priority: int) -> int:
    ((first, last),) = query("ready_places", queue, priority)
    ((seq,),) = query("ready_from_place", queue, priority, randint(first, last))
    return int(seq)
