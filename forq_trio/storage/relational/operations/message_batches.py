"""Message batches: opens and closes them, adds members, and shows how far they are.

storage/message_batches.py decides; message_batches_due.py does what follows. While there are no members, a batch of the
writer does nothing for this.
"""

from collections.abc import Sequence

import msgspec

from forq_trio.model.commands import (
    AddToMessageBatch,
    CloseMessageBatch,
    OpenMessageBatch,
    ShowMessageBatches,
)
from forq_trio.model.errors import ForqError, MessageBatchExists, MessageBatchNotFound, QueueFull
from forq_trio.model.message_batches.types import AddressedMessage, MessageBatch, MessageBatchPage
from forq_trio.model.messages.types import Produced
from forq_trio.storage.engine import DEFERRED, Deferred
from forq_trio.storage.message_batches import (
    BatchTotals,
    StoredMessageBatch,
    check_can_add,
    check_outer,
    check_totals,
    closed,
    if_visible_to,
    member_of,
    new_progress,
    with_members_added,
)
from forq_trio.storage.relational.operations.message_batches_due import STEP, count_waiting
from forq_trio.storage.relational.operations.message_batches_stored import (
    add_members,
    find,
    forget_oldest,
    insert,
    is_same,
    read,
    read_batch,
    save,
)
from forq_trio.storage.relational.operations.send import look_up, send
from forq_trio.storage.relational.operations.table import carry_out_each, operation, operation_on_each
from forq_trio.storage.relational.transaction import Transaction


@operation_on_each(OpenMessageBatch)
def open_batch(tx: Transaction, command: OpenMessageBatch) -> MessageBatch | ForqError:
    found = find(tx, command.id)
    if found is not None:
        same = found.made_by == command.by and is_same(tx, found, command.new)
        return found.as_callers_see() if same else MessageBatchExists()
    new, totals = command.new, tx.message_batches.totals
    size = new.stored_bytes
    refusal: ForqError | None = tx.check_takes_messages(
        *[name for each in new.messages for name in each.queues]
    )
    own = totals.made.get(command.by or "", BatchTotals())
    refusal = refusal or check_totals(size, totals.active, own, command.by)
    outer = None if new.outer is None else find(tx, new.outer)
    if new.outer is not None:
        refusal = refusal or check_outer(outer)
    if refusal is not None:
        return refusal
    forget_oldest(tx)
    number = tx.sequence.next_revision()
    if outer is not None:
        save(tx, outer, with_members_added(outer, 1))
        add_members(tx, outer, [number])
    stored = StoredMessageBatch(number, command.id, command.by, tx.now_ms, size, new, new_progress(outer))
    insert(tx, stored)
    return stored.as_callers_see()


@operation(AddToMessageBatch)
def add_all(
    tx: Transaction, commands: Sequence[AddToMessageBatch]
) -> list[tuple[Produced | ForqError, ...] | ForqError | Deferred]:
    look_up(tx, [(each.queue, each.message) for command in commands for each in command.messages])
    return carry_out_each(tx, commands, _add, None)


def _add(
    tx: Transaction, command: AddToMessageBatch
) -> tuple[Produced | ForqError, ...] | ForqError | Deferred:
    stored = find(tx, command.id)
    refusal = check_can_add(stored, len(command.messages))
    if refusal is not None or stored is None:
        return refusal or MessageBatchNotFound()
    results = _send_each(tx, stored, command.messages)
    if not isinstance(results, Deferred):
        added = [each.sequence for each in results if isinstance(each, Produced) and not each.duplicate]
        add_members(tx, stored, added)
        save(tx, stored, with_members_added(stored, len(added)))
    return results


def _send_each(
    tx: Transaction, stored: StoredMessageBatch, messages: Sequence[AddressedMessage]
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


@operation_on_each(CloseMessageBatch)
def close(tx: Transaction, command: CloseMessageBatch) -> MessageBatch | ForqError | Deferred:
    stored = if_visible_to(command.by, find(tx, command.id))
    if stored is None:
        return MessageBatchNotFound()
    all_counted = True
    if tx.message_batches.totals.counts_at is not None:
        if tx.allowances.of(STEP).used_up:
            return DEFERRED  # closes before it have counted as many members as a commit may
        all_counted = count_waiting(tx, stored.number)  # one of them may be left again
        stored = read(tx, stored.number)
    after = closed(stored, tx.now_ms, abandon=command.abandon, may_end=all_counted)
    save(tx, stored, after)
    return after.as_callers_see()


@operation_on_each(ShowMessageBatches)
def show(tx: Transaction, command: ShowMessageBatches) -> MessageBatchPage:
    if command.id is not None:
        found = if_visible_to(command.by, find(tx, command.id))
        return MessageBatchPage([] if found is None else [found.as_callers_see()])
    of = () if command.by is None else (command.by,)
    name = "list_message_batches_of" if of else "list_message_batches"
    rows = tx.query(name, *of, command.before, command.limit + 1)
    batches = []
    for row in rows[: command.limit]:
        try:
            batches.append(read_batch(row).as_callers_see())
        except msgspec.MsgspecError as error:
            tx.set_aside.note(f"batch {row[1]}", error)
    next_page = rows[command.limit - 1][0] if len(rows) > command.limit else None
    return MessageBatchPage(batches, next_page)
