"""How message batches and their members are read and written."""

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.message_batches.types import AddressedMessage, NewMessageBatch
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.message_batches import (
    BatchTotals,
    MessageBatchProgress,
    StoredMessageBatch,
    state_in_outer,
)
from forq_trio.storage.relational.parts.due import FROM_START, NEVER
from forq_trio.storage.relational.transaction import Transaction

_read_new = msgspec.json.Decoder(NewMessageBatch).decode
_read_progress = msgspec.json.Decoder(MessageBatchProgress).decode
_encode = msgspec.json.Encoder(order="deterministic").encode


def read_batch(row: Sequence[Any]) -> StoredMessageBatch:
    """A batch from its columns, without the contents of what it sends. Raises MsgspecError for a damaged one."""
    number, id, made_by, made_at, size, terms, progress = row
    return StoredMessageBatch(number, id, made_by, made_at, size, _read_new(terms), _read_progress(progress))


def find(tx: Transaction, id: str) -> StoredMessageBatch | None:
    """The batch with this id."""
    found = tx.query("find_message_batch", id)
    return read_batch(found[0]) if found else None


def read(tx: Transaction, number: int) -> StoredMessageBatch:
    """The batch with this number, which exists."""
    return read_batch(tx.query_without_inserts("read_message_batch", number)[0])


def outer_of(tx: Transaction, stored: StoredMessageBatch) -> StoredMessageBatch | None:
    """The batch that this one is a member of; None if it has ended, is forgotten, or cannot be read."""
    number = stored.progress.outer
    found = [] if number is None else tx.query_without_inserts("read_message_batch", number)
    with suppress(msgspec.MsgspecError):
        for outer in map(read_batch, found):
            return outer if outer.progress.ended_at is None else None
    return None


def is_same(tx: Transaction, stored: StoredMessageBatch, new: NewMessageBatch) -> bool:
    """Whether a batch was opened like this."""
    ((digest,),) = tx.query("message_batch_digest", stored.number)
    return bool(digest == _digest(new))


def _digest(new: NewMessageBatch) -> str:
    return sha256(_encode(new)).hexdigest()


def insert(tx: Transaction, stored: StoredMessageBatch) -> None:
    """Store a new batch."""
    new, number = stored.new, stored.number
    terms = replace(new, then=_without_content(new.then), on_dead=_without_content(new.on_dead))
    texts = _digest(new), _encode(terms).decode(), _encode(stored.progress).decode()
    own = number, stored.id, stored.made_by, stored.made_at, stored.size
    tx.query("open_message_batch", *own, *texts, stored.due_at)
    if new.messages:
        tx.query("keep_sends", number, _encode(new).decode())
    tx.message_batches.due_times[number] = stored.due_at
    _count_stored(tx, 1)
    _count_active(tx, stored.made_by, stored.size, 1)


def _without_content(sent: AddressedMessage | None) -> AddressedMessage | None:
    return None if sent is None else AddressedMessage(sent.queue, NewMessage(""))


def read_sends(tx: Transaction, number: int) -> NewMessageBatch:
    """How a batch was opened, with the contents of what it sends."""
    ((sends,),) = tx.query_without_inserts("read_sends", number)
    return _read_new(sends)


def save(tx: Transaction, before: StoredMessageBatch, after: StoredMessageBatch) -> None:
    """Store how far a batch is. Its outer batch, if it is to learn of the end, counts it with the next members."""
    if after == before:
        return
    progress = _encode(after.progress).decode()
    tx.run("change_message_batch", [(progress, after.due_at, int(after.is_over), after.number)])
    tx.message_batches.due_times[after.number] = after.due_at
    tx.message_batches.note_over(after)
    if after.progress.to_send:
        tx.message_batches.sends = True
    if after.progress.outer is not None and after.tells_outer and not before.tells_outer:
        tx.message_batches.noted.append((after.number, state_in_outer(after)))
    if after.is_over and not before.is_over:
        tx.query("forget_sends", after.number)
        _count_active(tx, after.made_by, after.size, -1)


def forget(tx: Transaction, number: int) -> None:
    """Remove a batch that is over."""
    tx.query("forget_message_batch", number)
    tx.message_batches.due_times[number] = NEVER
    tx.message_batches.counts_changed = True
    _count_stored(tx, -1)


def forget_damaged(tx: Transaction, number: int) -> bool:
    """Remove a batch that is due and cannot be read, if its time is over however it was opened; else False.

    Its outer batch counts it as failed, as one that expired.
    """
    found = tx.query("damaged_message_batch", number, tx.now_ms - limits.MESSAGE_BATCH_EXPIRES_MS_MAX)
    for made_by, size, is_over in found:
        tx.query("forget_sends", number)
        forget(tx, number)
        if not is_over:
            _count_active(tx, made_by, size, -1)
            tx.message_batches.noted.append((number, "failed"))
    return bool(found)


def forget_oldest(tx: Transaction) -> None:
    """Forget the oldest batch that is over, if as many are stored as may be."""
    totals = tx.message_batches.totals
    if totals.stored >= limits.MESSAGE_BATCHES_MAX:
        oldest = tx.query("oldest_message_batch", totals.over_from)
        number, due_at = oldest[0] if oldest else (None, FROM_START)
        tx.message_batches.totals = replace(totals, over_from=due_at)
        if number is not None:
            forget(tx, number)


def _count_stored(tx: Transaction, more: int) -> None:
    totals = tx.message_batches.totals
    tx.message_batches.totals = replace(totals, stored=totals.stored + more)


def _count_active(tx: Transaction, made_by: str | None, size: int, more: int) -> None:
    """Count a batch that was made, or (-1) that is over."""
    totals = tx.message_batches.totals
    made = {**totals.made}
    if made_by is not None:
        own = made.pop(made_by, BatchTotals()).plus(more, more * size)
        if own.number:
            made[made_by] = own
    active = totals.active.plus(more, more * size)
    tx.message_batches.totals = replace(totals, active=active, made=made)


def add_members(tx: Transaction, stored: StoredMessageBatch, numbers: Sequence[int]) -> None:
    """Note members of a batch: the sequence numbers of messages, or the number of a batch inside."""
    tx.run("add_batch_member", [(number, stored.number) for number in numbers])
    _count_members(tx, len(numbers))


def forget_members(tx: Transaction, numbers: Sequence[int]) -> None:
    """Forget members that are gone, or whose batch is over."""
    if numbers:
        tx.query_without_inserts("forget_batch_members", str([*numbers]))
        _count_members(tx, -len(numbers))


def _count_members(tx: Transaction, more: int) -> None:
    """Count members. Where the number is a lower bound and comes to 0, they are read again, up to a bound."""
    if more:
        totals = tx.message_batches.totals
        tx.message_batches.totals = replace(totals, members=totals.members + more)
        if totals.members + more <= 0 and not totals.knows_members:
            tx.message_batches.count_members(tx.query_without_inserts)
