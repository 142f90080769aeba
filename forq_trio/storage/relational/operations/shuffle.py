"""Random ready messages of a queue, at a cost that does not depend on how many there are.

In a short queue every message is equally likely. In a long one a message is drawn in three steps, each a seek in the
claim index: a priority that ready messages have, a position between its first and its last, the message at that
position or the next one. That favours messages after a gap and priorities with few messages, which does not matter to a
shuffle.
"""

from random import choice, randint, sample

from forq_trio.model import limits
from forq_trio.storage.relational.statements import Query


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
    # Only a very uneven queue gets here with too few: fill up with its first messages.
    for (seq,) in query("ready_sequences", queue, count) if len(drawn) < count else ():
        if len(drawn) < count:
            drawn[seq] = None
    return list(drawn)


_TRIES = 4


def _draw_one(query: Query, queue: str, priority: int) -> int:
    ((first, last),) = query("ready_positions", queue, priority)
    ((seq,),) = query("ready_from", queue, priority, randint(first, last))
    return int(seq)
