"""Turns offers that wait behind a message in process into messages once it is gone; restores keys of dead letters.

- Behind a message in process one offer may wait (debounce, once more); a newer offer replaces it. Its bytes count with
  those of the message.
- The offer becomes a message of the same key, with its revision, in the batch in which the one in process is removed or
  becomes a dead letter: before the next command that names a key, and at the latest before held messages become ready.
  If a claim moved or removed that message, it happens after the claims, and the next batch counts the queue as woken.
  The bounds of the queue are not checked.
- A purge, a drop, an eviction without dead letters, and an update that may not wait remove the waiting offer.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from forq_trio.storage.relational.operations.send import store
from forq_trio.storage.relational.transaction import Transaction


def store_waiting(tx: Transaction) -> None:
    """Turn offers that waited behind messages that are gone into messages, without checking the bounds of queues."""
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


def restore_keys(tx: Transaction, moved: Sequence[tuple[str, str, int]]) -> None:
    """Give messages that were moved out of a dead-letter queue their keys back if those are free; else they lose them.

    moved: (queue, kind of the key, sequence number) of each.
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
