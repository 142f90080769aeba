"""What waits behind a message in process, and becomes a message once that is gone; and dead letters that come back."""

from msgspec.structs import replace

from forq_trio.storage.relational.operations.send import store
from forq_trio.storage.relational.transaction import Transaction


def store_waiting(tx: Transaction) -> None:
    """Make messages of the offers that waited behind messages that are gone. The bounds of queues are not checked."""
    waiting = tx.waiting
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


def give_key_back(tx: Transaction, queue: str, kind: str, seq: int) -> None:
    """A message that had a key comes to a queue: it has its key again if that is free, else none any more."""
    store_waiting(tx)
    ((key,),) = tx.query("own_key", seq)
    if tx.query("is_pending", queue, kind, key):
        tx.query("give_key", None, None, seq)
        tx.query("delete_keys", str([seq]))
    else:
        tx.query("give_key", key, kind, seq)
