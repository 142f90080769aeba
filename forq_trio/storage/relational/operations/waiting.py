"""What waits behind a message in process, and becomes a message once that is gone; and dead letters that come back."""

from collections.abc import Sequence

from msgspec.structs import replace

from forq_trio.storage.relational.operations.send import store
from forq_trio.storage.relational.transaction import Transaction


def store_waiting(tx: Transaction) -> None:
    """Make messages of the offers that waited behind messages that are gone. The bounds of queues are not checked."""
    waiting = tx.leftovers.offers
    if not waiting:
        return
    rows = []
    for queue, key, each in waiting:
        message = replace(each.offering.message, process_after=each.due, delay_ms=None)
        (produced,) = store(tx, queue, (message,), tx.rules(queue), key)
        mode, offers = each.offering.mode, (each.offers, each.first_offer_at, each.last_offer_at)
        rows.append((produced.sequence, key[1], mode, each.due, each.revision, *offers, each.max_wait_until))
    waiting.clear()
    tx.write_inserts()
    tx.run("insert_key", rows)


def give_keys_back(tx: Transaction, moved: Sequence[tuple[str, str, int]]) -> None:
    """Messages that had a key come to queues: each has its key again if that is free, else none any more.

    moved: the queue, the kind of the key, and the sequence of each.
    """
    if not moved:
        return
    store_waiting(tx)
    own = [key for ((key,),) in tx.query_each("own_key", [(seq,) for _, _, seq in moved])]
    keys = [(queue, kind, key) for (queue, kind, _), key in zip(moved, own, strict=True)]
    taken = {key for key, found in zip(keys, tx.query_each("is_pending", keys), strict=True) if found}
    for name, (_, kind, seq) in zip(keys, moved, strict=True):
        if name in taken:
            tx.query("give_key", None, None, seq)
            tx.query("delete_keys", str([seq]))
        else:
            tx.query("give_key", name[2], kind, seq)
            taken.add(name)
