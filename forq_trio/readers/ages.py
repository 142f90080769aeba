"""Since when the oldest ready messages can be claimed."""

from collections.abc import Sequence

from forq_trio.storage.reader import Reader


def claimable_since(queues: Sequence[str], reader: Reader) -> dict[str, int]:
    """By queue, since when (epoch ms) its oldest ready message can be claimed; queues without one are left out.

    The oldest message is the one received first. If it is also the next to be claimed (unless priorities or the order
    put another first), the time for which it was delayed does not count.
    """
    since = {}
    for queue in queues:
        oldest = reader.queue(queue).oldest_ready_at
        if oldest is None:
            continue
        head = reader.peek(queue, 1)
        if head and head[0].received_at == oldest:
            oldest = max(oldest, head[0].process_after)
        since[queue] = oldest
    return since
