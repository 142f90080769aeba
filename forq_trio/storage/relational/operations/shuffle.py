"""Random ready messages of a queue, at a cost that does not depend on how many there are.

In a short queue every message is equally likely. In a long queue a message is drawn in three steps, each of them a seek
in the claim index: a priority that ready messages have, a position between its first and its last, and the message at
or after that position. That favours messages after a gap and in priorities with few messages, which does not matter for
a shuffle.
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
    spans: dict[int, tuple[int, int]] = {}
    repeats = 0
    while len(drawn) < count and priorities and repeats < _REPEATS_MAX:
        priority = choice(priorities)
        if priority not in spans:
            (spans[priority],) = query("ready_positions", queue, priority)
        ((seq,),) = query("ready_from", queue, priority, randint(*spans[priority]))
        repeats = repeats + 1 if seq in drawn else 0
        drawn[seq] = None
    # Only a very uneven queue gets here with too few: fill up with its first messages.
    for (seq,) in query("ready_sequences", queue, count) if len(drawn) < count else ():
        if len(drawn) < count:
            drawn[seq] = None
    return list(drawn)


_REPEATS_MAX = 8
"""How often in a row a draw may repeat a message: most positions may belong to only a few messages."""
