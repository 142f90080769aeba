"""The reference engine: message batches."""

from collections.abc import Sequence

from forq_trio.model import limits
from forq_trio.model.commands import (
    AddToMessageBatch,
    CloseMessageBatch,
    OpenMessageBatch,
    ShowMessageBatches,
)
from forq_trio.model.errors import ForqError, MessageBatchExists, MessageBatchNotFound
from forq_trio.model.message_batches.types import MessageBatch, MessageBatchPage
from forq_trio.model.messages.types import Produced
from forq_trio.storage.bound_tables import check_all_unbound
from forq_trio.storage.message_batches import (
    GONE,
    BatchTotals,
    State,
    StoredMessageBatch,
    after_sending,
    check_can_add,
    check_outer,
    check_totals,
    closed,
    counted,
    expired,
    if_visible_to,
    member_of,
    new_progress,
    next_to_send,
    state_in_outer,
    with_members_added,
    with_retries,
)
from oracle.operations import operation
from oracle.send import send
from oracle.transaction import Transaction


def _of_number(tx: Transaction, number: int | None) -> StoredMessageBatch | None:
    return next((each for each in tx.state.message_batches.values() if each.number == number), None)


def _save(tx: Transaction, before: StoredMessageBatch, after: StoredMessageBatch) -> None:
    if after == before:
        return
    tx.state.message_batches[after.id] = after
    if after.progress.to_send:
        tx.batches_send = True
    if after.progress.outer is not None and after.tells_outer and not before.tells_outer:
        tx.batch_notes.append((after.number, state_in_outer(after)))


@operation(OpenMessageBatch)
def open_batch(tx: Transaction, command: OpenMessageBatch) -> MessageBatch:
    batches, new = tx.state.message_batches, command.new
    if (found := batches.get(command.id)) is not None:
        if (found.made_by, found.new) != (command.by, new):
            raise MessageBatchExists
        return found.as_callers_see()
    size = new.stored_bytes
    named = [queue for each in new.messages for queue in each.queues]
    active = [each for each in batches.values() if not each.is_over]
    of_token = [each for each in active if each.made_by == command.by]
    refusal: ForqError | None = check_all_unbound(named, tx.state.settings.get) or check_totals(
        size, _totals(active), _totals(of_token), command.by
    )
    outer = None if new.outer is None else batches.get(new.outer)
    if new.outer is not None:
        refusal = refusal or check_outer(outer)
    if refusal is not None:
        raise refusal
    if len(batches) >= limits.MESSAGE_BATCHES_MAX:
        oldest = min((each for each in batches.values() if each.is_over), key=_by_due_time)
        del batches[oldest.id]
    number = tx.state.last_seq = tx.state.last_seq + 1
    if outer is not None:
        _save(tx, outer, with_members_added(outer, 1))
        tx.state.batch_members[number] = outer.number, "left"
    stored = StoredMessageBatch(number, command.id, command.by, tx.now_ms, size, new, new_progress(outer))
    batches[command.id] = stored
    return stored.as_callers_see()


def _totals(batches: Sequence[StoredMessageBatch]) -> BatchTotals:
    return BatchTotals(len(batches), sum(each.size for each in batches))


def _by_due_time(stored: StoredMessageBatch) -> tuple[int, int]:
    return stored.due_at, stored.number


@operation(AddToMessageBatch)
def add(tx: Transaction, command: AddToMessageBatch) -> tuple[Produced | ForqError, ...]:
    stored = tx.state.message_batches.get(command.id)
    refusal = check_can_add(stored, len(command.messages))
    if refusal is not None:
        raise refusal
    assert stored is not None
    newest = tx.state.last_seq
    results: list[Produced | ForqError] = []
    for each in command.messages:
        try:
            sent = send(tx, each.queue, (member_of(stored.id, each.message),), newest)
            results.append(sent[0] if isinstance(sent, tuple) else sent)
        except ForqError as error:
            results.append(error)
    added = [each.sequence for each in results if isinstance(each, Produced) and not each.duplicate]
    for sequence in added:
        tx.state.batch_members[sequence] = stored.number, "left"
    _save(tx, stored, with_members_added(stored, len(added)))
    return tuple(results)


@operation(CloseMessageBatch)
def close(tx: Transaction, command: CloseMessageBatch) -> MessageBatch:
    stored = if_visible_to(command.by, tx.state.message_batches.get(command.id))
    if stored is None:
        raise MessageBatchNotFound
    after = closed(stored, tx.now_ms, abandon=command.abandon)
    _save(tx, stored, after)
    return after.as_callers_see()


@operation(ShowMessageBatches)
def show(tx: Transaction, command: ShowMessageBatches) -> MessageBatchPage:
    if command.id is not None:
        found = if_visible_to(command.by, tx.state.message_batches.get(command.id))
        return MessageBatchPage([] if found is None else [found.as_callers_see()])
    wanted = [
        each
        for each in tx.state.message_batches.values()
        if if_visible_to(command.by, each) is not None and each.number < command.before
    ]
    wanted.sort(key=lambda each: -each.number)
    page = wanted[: command.limit]
    next_page = page[-1].number if len(wanted) > len(page) else None
    return MessageBatchPage([each.as_callers_see() for each in page], next_page)


def follow(tx: Transaction, *, sends: bool) -> None:
    """Count what became of members, and send what follows."""
    while tx.batch_notes or (sends and tx.batches_send):
        _count_noted(tx)
        if sends and tx.batches_send:
            run_due(tx)


def _count_noted(tx: Transaction) -> None:
    notes, tx.batch_notes = tx.batch_notes, []
    members = tx.state.batch_members
    changes: dict[int, list[tuple[State, State]]] = {}
    for seq, after in notes:
        if seq not in members:
            continue
        number, before = members[seq]
        changes.setdefault(number, []).append((before, after))
        if after in GONE:
            del members[seq]
        else:
            members[seq] = number, after
    for number in sorted(changes):
        stored = _of_number(tx, number)
        if stored is not None and stored.progress.ended_at is None:
            _save(tx, stored, counted(stored, changes[number], tx.now_ms))
            continue
        for seq, _ in notes:
            if seq in members and members[seq][0] == number:
                del members[seq]


def run_due(tx: Transaction) -> None:
    """Do what is due for batches: send, expire, forget."""
    batches = tx.state.message_batches
    while batches and (stored := min(batches.values(), key=_by_due_time)).due_at <= tx.now_ms:
        if stored.progress.unsent:
            _send_next(tx, stored)
        elif stored.progress.ended_at is None:
            _save(tx, stored, expired(stored, tx.now_ms))
        else:
            del batches[stored.id]
    tx.batches_send = False


def _send_next(tx: Transaction, stored: StoredMessageBatch) -> None:
    sending = with_retries(stored)
    is_then = sending.progress.to_send[0] == "then"
    outer = _of_number(tx, stored.progress.outer) if is_then else None
    takes = outer is not None and outer.progress.ended_at is None
    sent = next_to_send(sending, outer_takes=takes)
    outcome: Produced | ForqError | None = check_all_unbound(sent.queues, tx.state.settings.get)
    for queue in sent.queues:
        outcome = outcome or tx.name(queue, stored.made_by or "")
    if outcome is None:
        found = send(tx, sent.queue, (sent.message,), tx.state.last_seq)
        outcome = found[0] if isinstance(found, tuple) else found
    if isinstance(outcome, Produced) and takes:
        tx.state.batch_members[outcome.sequence] = tx.state.batch_members.pop(stored.number)
    _save(tx, stored, after_sending(sending, outcome, tx.now_ms))
