"""Message batches: opens them, adds members, counts what becomes of those, and sends what follows.

- storage/message_batches.py decides. While no message is a member, a batch of the writer does nothing for this.
- `Transaction.transition` notes each message that ends or moves. After the commands the noted ones that are members are
  found with one statement and counted, batch by batch. What follows is sent in the same commit, as far as the allowance
  permits and if it may store messages; else the batch is due, and a later one of the writer sends it. What claims
  remove is counted after them, and what follows from it is sent by the next one.
- A batch that cannot be read is tried again after SET_ASIDE_RETRY_MS.
- A member of a batch that has ended, or is forgotten, is forgotten with its next change.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import (
    AddToMessageBatch,
    CloseMessageBatch,
    OpenMessageBatch,
    ShowMessageBatches,
)
from forq_trio.model.errors import ForqError, MessageBatchExists, MessageBatchNotFound, QueueFull
from forq_trio.model.message_batches.types import (
    BatchMessage,
    MessageBatch,
    MessageBatchPage,
    NewMessageBatch,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Produced
from forq_trio.storage.allowance import Allowance
from forq_trio.storage.engine import DEFERRED, Deferred
from forq_trio.storage.message_batches import (
    MessageBatchProgress,
    Shares,
    State,
    StoredMessageBatch,
    after_sending,
    check_outer,
    check_shares,
    check_takes,
    closed,
    counted,
    expired,
    grown,
    inside,
    member_of,
    next_to_send,
    owned,
    size_of,
    state_in_outer,
)
from forq_trio.storage.relational.operations.send import send
from forq_trio.storage.relational.operations.table import operation_on_each
from forq_trio.storage.relational.own_work import OWN_WORK, OwnWork
from forq_trio.storage.relational.transaction import Transaction

_STEP = "message_batches"
"""The step whose allowance bounds what a batch of the writer does for batches that are due."""
Known = dict[int, StoredMessageBatch]
"""Batches by number, as they are by now."""
_read_new = msgspec.json.Decoder(NewMessageBatch).decode
_read_progress = msgspec.json.Decoder(MessageBatchProgress).decode
_encode = msgspec.json.Encoder().encode


def read_batch(row: Sequence[Any]) -> StoredMessageBatch:
    """A batch from its columns, without the contents of what it sends. Raises MsgspecError for a damaged one."""
    number, id, made_by, made_at, size, terms, progress = row
    return StoredMessageBatch(number, id, made_by, made_at, size, _read_new(terms), _read_progress(progress))


def _find(tx: Transaction, id: str) -> StoredMessageBatch | None:
    found = tx.query("find_message_batch", id)
    return read_batch(found[0]) if found else None


def _read(tx: Transaction, number: int) -> StoredMessageBatch | None:
    found = tx.query_without_inserts("read_message_batch", number)
    return read_batch(found[0]) if found else None


def _whole(tx: Transaction, stored: StoredMessageBatch) -> StoredMessageBatch:
    """The batch with the contents of what it sends."""
    return replace(
        stored, new=_read_new(tx.query_without_inserts("message_batch_sends", stored.number)[0][0])
    )


def _save(
    tx: Transaction, before: StoredMessageBatch, after: StoredMessageBatch, known: Known | None = None
) -> None:
    """Store how far a batch is; if it is over now, its outer batch counts it. known: batches that were read already."""
    if after == before:
        return
    if known is not None:
        known[after.number] = after
    tx.run("change_message_batch", [(_encode(after.progress).decode(), after.due_at, after.number)])
    tx.message_batches.changed = True
    if after.progress.to_send and after.due_at <= tx.now_ms:
        tx.message_batches.sends = True
    if after.is_over and not before.is_over:
        _tell_outer(tx, after, known)


def _tell_outer(tx: Transaction, stored: StoredMessageBatch, known: Known | None) -> None:
    """Count a batch that is over in its outer one, unless `then` has taken its place there."""
    number = stored.progress.outer
    if number is None:
        return
    outer = _read(tx, number) if known is None else known.get(number)
    if outer is not None and not (stored.progress.then_id and outer.progress.ended_at is None):
        _save(tx, outer, counted(outer, [("left", state_in_outer(stored))], tx.now_ms), known)


@operation_on_each(OpenMessageBatch)
def open_batch(tx: Transaction, command: OpenMessageBatch) -> MessageBatch | ForqError:
    found = _find(tx, command.id)
    if found is not None:
        same = found.made_by == command.by and _whole(tx, found).new == command.new
        return found.as_callers_see() if same else MessageBatchExists()
    new, totals = command.new, tx.message_batches.totals
    size = size_of(new)
    refusal: ForqError | None = tx.check_takes_messages(
        *[name for each in new.messages for name in each.queues]
    )
    own = totals.made.get(command.by or "", Shares())
    refusal = refusal or check_shares(size, totals.shares, own, command.by)
    outer = None if new.outer is None else _find(tx, new.outer)
    if new.outer is not None:
        refusal = refusal or check_outer(outer)
    if refusal is not None:
        return refusal
    progress = inside(outer)
    if outer is not None:
        _save(tx, outer, grown(outer, 1))
    number = tx.sequence.next_revision()
    stored = StoredMessageBatch(number, command.id, command.by, tx.now_ms, size, new, progress)
    terms = replace(new, then=_without_content(new.then), on_dead=_without_content(new.on_dead))
    texts = [_encode(each).decode() for each in (terms, progress, new)]
    tx.query("open_message_batch", number, command.id, command.by, tx.now_ms, size, *texts, stored.due_at)
    _share(tx, command.by, 1, size)
    return stored.as_callers_see()


def _without_content(sent: BatchMessage | None) -> BatchMessage | None:
    return None if sent is None else BatchMessage(sent.queue, NewMessage(""))


def _share(tx: Transaction, made_by: str | None, count: int, size: int) -> None:
    """Count a batch that was made, or (-1) forgotten."""
    totals = tx.message_batches.totals
    made = totals.made
    if made_by is not None:
        own = made.get(made_by, Shares()).plus(count, size)
        made = (
            {**made, made_by: own}
            if own.number
            else {name: each for name, each in made.items() if name != made_by}
        )
    tx.message_batches.totals = replace(totals, shares=totals.shares.plus(count, size), made=made)
    tx.message_batches.changed = True


@operation_on_each(AddToMessageBatch)
def add(
    tx: Transaction, command: AddToMessageBatch
) -> tuple[Produced | ForqError, ...] | ForqError | Deferred:
    stored = _find(tx, command.id)
    refusal = check_takes(stored, len(command.messages))
    if refusal is not None or stored is None:
        return refusal or MessageBatchNotFound()
    results = _send_each(tx, stored, command.messages)
    if not isinstance(results, Deferred):
        added = [each.sequence for each in results if isinstance(each, Produced) and not each.duplicate]
        _add_members(tx, stored, added)
        _save(tx, stored, grown(stored, len(added)))
    return results


def _send_each(
    tx: Transaction, stored: StoredMessageBatch, messages: Sequence[BatchMessage]
) -> tuple[Produced | ForqError, ...] | Deferred:
    """Send messages, each on its own. If the first has to wait, all do; a later one is refused instead.

    None of them evicts another one, so that none ends before it is a member.
    """
    newest = tx.sequence.last
    results: list[Produced | ForqError] = []
    for each in messages:
        sent = send(tx, each.queue, (member_of(stored.id, each.message),), newest)
        if not isinstance(sent, Deferred):
            results.append(sent[0] if isinstance(sent, list) else sent)
        elif results:
            results.append(QueueFull())
        else:
            return DEFERRED
    tx.write_inserts()
    return tuple(results)


def _add_members(tx: Transaction, stored: StoredMessageBatch, sequences: Sequence[int]) -> None:
    tx.run("add_batch_member", [(sequence, stored.number) for sequence in sequences])
    _note_members(tx, len(sequences))


def _note_members(tx: Transaction, more: int) -> None:
    if more:
        totals = tx.message_batches.totals
        tx.message_batches.totals = replace(totals, members=totals.members + more)


@operation_on_each(CloseMessageBatch)
def close(tx: Transaction, command: CloseMessageBatch) -> MessageBatch | ForqError:
    stored = owned(_find(tx, command.id), command.by)
    if stored is None:
        return MessageBatchNotFound()
    after = closed(stored, tx.now_ms, abandon=command.abandon)
    _save(tx, stored, after)
    return after.as_callers_see()


@operation_on_each(ShowMessageBatches)
def show(tx: Transaction, command: ShowMessageBatches) -> MessageBatchPage:
    if command.id is not None:
        found = owned(_find(tx, command.id), command.by)
        return MessageBatchPage([] if found is None else [found.as_callers_see()])
    of = () if command.by is None else (command.by,)
    name = "list_message_batches_of" if of else "list_message_batches"
    rows = tx.query(name, *of, command.before, command.limit + 1)
    batches = [read_batch(row) for row in rows[: command.limit]]
    next_page = batches[-1].number if len(rows) > len(batches) else None
    return MessageBatchPage([each.as_callers_see() for each in batches], next_page)


def follow(tx: Transaction, *, sends: bool) -> None:
    """Count what became of members in this batch of the writer, and send what follows. sends: whether it may send."""
    while tx.message_batches.noted or (sends and tx.message_batches.sends):
        if not tx.isolated:
            _count_noted(tx)
        elif error := tx.attempt(lambda: _count_noted(tx)):
            tx.message_batches.noted = []
            tx.set_aside.note("members of batches", error)
        if sends and tx.message_batches.sends:
            run_due(tx)


def _count_noted(tx: Transaction) -> None:
    """Count the noted messages that are members."""
    noted, tx.message_batches.noted = tx.message_batches.noted, []
    if not noted:
        return
    found = tx.query_without_inserts("find_batch_members", str(list({seq for seq, _, _ in noted})))
    if not found:
        return
    of: dict[int, tuple[int, State]] = {
        seq: (number, "dead" if dead else "left") for seq, number, dead in found
    }
    changes: dict[int, list[tuple[State, State]]] = {}
    gone: list[int] = []
    for seq, after, is_gone in noted:
        if seq in of:
            number, before = of[seq]
            changes.setdefault(number, []).append((before, after))
            of[seq] = number, after
            if is_gone:
                gone.append(seq)
                del of[seq]
    known = _read_with_outers(tx, changes)
    for number in sorted(
        changes
    ):  # an outer batch has a lower number, so it is counted before what inner ones tell it
        stored = known.get(number)
        if stored is None or stored.progress.ended_at is not None:
            lost = [seq for seq, (of_batch, _) in of.items() if of_batch == number]
            gone += lost
            for seq in lost:
                del of[seq]
        else:
            _save(tx, stored, counted(stored, changes[number], tx.now_ms), known)
    tx.run("mark_batch_member", [(int(state == "dead"), seq) for seq, (_, state) in of.items()])
    if gone:
        tx.query_without_inserts("forget_batch_members", str(gone))
        _note_members(tx, -len(gone))


def _read_with_outers(tx: Transaction, numbers: Iterable[int]) -> Known:
    """These batches and all that they are inside of, with as many waits as they are deep."""
    known: Known = {}
    missing = set(numbers)
    while missing:
        rows = tx.query_without_inserts("read_message_batches", str(sorted(missing)))
        found = [read_batch(row) for row in rows]
        known |= {each.number: each for each in found}
        missing = {each.progress.outer for each in found if each.progress.outer is not None} - known.keys()
    return known


def run_due(tx: Transaction) -> None:
    """Do what is due for batches, as far as the allowance permits: send, expire, forget.

    In an isolated batch of the writer one that cannot be read is tried again later.
    """
    allowance = tx.allowances.of(_STEP)
    tx.message_batches.changed = True
    tx.begin_step()
    waits = False
    while not (allowance.used_up or waits or tx.waited_out):
        found = tx.query("due_message_batch", tx.now_ms)
        if not found:
            break
        number, id = found[0]
        if not tx.isolated:
            waits = not _run(tx, number, allowance)
            continue
        did: list[bool] = []
        error = tx.attempt(lambda did=did, key=number: did.append(_run(tx, key, allowance)))  # type: ignore[misc]
        if error is None:
            waits = not did[0]
        else:
            tx.query("retry_message_batch", tx.now_ms + limits.SET_ASIDE_RETRY_MS, number)
            tx.set_aside.note(f"batch {id}", error)
            allowance.charge(limits.MESSAGE_BATCH_WEIGHT, 0)
    tx.message_batches.sends = False  # what is left is due, so the next batch of the writer goes on


def _run(tx: Transaction, number: int, allowance: Allowance) -> bool:
    """Do the next thing that is due for a batch; False if it has to wait for the next batch of the writer."""
    stored = _read(tx, number)
    assert stored is not None
    if stored.progress.to_send:
        if not _send_next(tx, stored):
            return False
    elif stored.progress.ended_at is None:
        _save(tx, stored, expired(stored, tx.now_ms))
    else:
        tx.query("forget_message_batch", number)
        _share(tx, stored.made_by, -1, -stored.size)
    allowance.charge(limits.MESSAGE_BATCH_WEIGHT, stored.size)
    return True


def _send_next(tx: Transaction, stored: StoredMessageBatch) -> bool:
    """Send the next message of a batch; False if that has to wait. New queues count for the token that opened it."""
    is_then = stored.progress.to_send[0] == "then"
    number = stored.progress.outer
    outer = _read(tx, number) if is_then and number is not None else None
    takes = outer is not None and outer.progress.ended_at is None
    sent = next_to_send(_whole(tx, stored), outer_takes=takes)
    outcome = _send(tx, sent, stored.made_by or "")
    if isinstance(outcome, Deferred):
        return False
    if isinstance(outcome, Produced) and outer is not None and takes:
        _add_members(tx, outer, [outcome.sequence])
    _save(tx, stored, after_sending(stored, outcome, tx.now_ms))
    return True


def _send(tx: Transaction, sent: BatchMessage, made_by: str) -> Produced | ForqError | Deferred:
    if (refusal := tx.check_takes_messages(*sent.queues)) is not None:
        return refusal
    for queue in sent.queues:
        if (refusal := tx.name(queue, made_by)) is not None:
            return refusal
    outcome = send(tx, sent.queue, (sent.message,))
    tx.write_inserts()
    return outcome[0] if isinstance(outcome, list) else outcome


def _due_at(tx: Transaction) -> int | None:
    """When the next batch is due; read again if it may have changed."""
    if tx.message_batches.changed:
        found = tx.query("next_message_batch")
        totals = tx.message_batches.totals
        tx.message_batches.totals = replace(totals, due_at=found[0][0] if found else None)
        tx.message_batches.changed = False
    return tx.message_batches.totals.due_at


OWN_WORK.append(OwnWork(_due_at, run_due, follow=follow))
