"""The reference engine: message batches."""

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
from oracle.operations import operation
from oracle.send import send
from oracle.transaction import Transaction


def _of_number(tx: Transaction, number: int | None) -> StoredMessageBatch | None:
    return next((each for each in tx.state.message_batches.values() if each.number == number), None)


def _save(tx: Transaction, before: StoredMessageBatch, after: StoredMessageBatch) -> None:
    if after == before:
        return
    tx.state.message_batches[after.id] = after
    if after.progress.to_send and after.due_at <= tx.now_ms:
        tx.batches_send = True
    if not after.is_over or before.is_over:
        return
    outer = _of_number(tx, after.progress.outer)
    if outer is not None and not (after.progress.then_id and outer.progress.ended_at is None):
        _save(tx, outer, counted(outer, [("left", state_in_outer(after))], tx.now_ms))


@operation(OpenMessageBatch)
def open_batch(tx: Transaction, command: OpenMessageBatch) -> MessageBatch:
    batches, new = tx.state.message_batches, command.new
    if (found := batches.get(command.id)) is not None:
        if (found.made_by, found.new) != (command.by, new):
            raise MessageBatchExists
        return found.as_callers_see()
    size = size_of(new)
    named = [queue for each in new.messages for queue in each.queues]
    total = Shares(len(batches), sum(each.size for each in batches.values()))
    of_token = [each for each in batches.values() if each.made_by == command.by]
    own = Shares(len(of_token), sum(each.size for each in of_token))
    refusal: ForqError | None = check_all_unbound(named, tx.state.settings.get) or check_shares(
        size, total, own, command.by
    )
    outer = None if new.outer is None else batches.get(new.outer)
    if new.outer is not None:
        refusal = refusal or check_outer(outer)
    if refusal is not None:
        raise refusal
    progress = inside(outer)
    if outer is not None:
        _save(tx, outer, grown(outer, 1))
    number = tx.state.last_seq = tx.state.last_seq + 1
    stored = StoredMessageBatch(number, command.id, command.by, tx.now_ms, size, new, progress)
    batches[command.id] = stored
    return stored.as_callers_see()


@operation(AddToMessageBatch)
def add(tx: Transaction, command: AddToMessageBatch) -> tuple[Produced | ForqError, ...]:
    stored = tx.state.message_batches.get(command.id)
    refusal = check_takes(stored, len(command.messages))
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
    _save(tx, stored, grown(stored, len(added)))
    return tuple(results)


@operation(CloseMessageBatch)
def close(tx: Transaction, command: CloseMessageBatch) -> MessageBatch:
    stored = owned(tx.state.message_batches.get(command.id), command.by)
    if stored is None:
        raise MessageBatchNotFound
    after = closed(stored, tx.now_ms, abandon=command.abandon)
    _save(tx, stored, after)
    return after.as_callers_see()


@operation(ShowMessageBatches)
def show(tx: Transaction, command: ShowMessageBatches) -> MessageBatchPage:
    if command.id is not None:
        found = owned(tx.state.message_batches.get(command.id), command.by)
        return MessageBatchPage([] if found is None else [found.as_callers_see()])
    wanted = [
        each
        for each in tx.state.message_batches.values()
        if owned(each, command.by) is not None and each.number < command.before
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
    for seq, after, is_gone in notes:
        if seq not in members:
            continue
        number, before = members[seq]
        changes.setdefault(number, []).append((before, after))
        if is_gone:
            del members[seq]
        else:
            members[seq] = number, after
    for number in sorted(changes):
        stored = _of_number(tx, number)
        if stored is not None and stored.progress.ended_at is None:
            _save(tx, stored, counted(stored, changes[number], tx.now_ms))
            continue
        for seq, _, _ in notes:
            if seq in members and members[seq][0] == number:
                del members[seq]


def run_due(tx: Transaction) -> None:
    """Do what is due for batches: send, expire, forget."""
    batches = tx.state.message_batches
    while due := sorted((each.due_at, each.number, each.id) for each in batches.values()):
        if due[0][0] > tx.now_ms:
            break
        stored = batches[due[0][2]]
        if stored.progress.to_send:
            _send_next(tx, stored)
        elif stored.progress.ended_at is None:
            _save(tx, stored, expired(stored, tx.now_ms))
        else:
            del batches[stored.id]
    tx.batches_send = False


def _send_next(tx: Transaction, stored: StoredMessageBatch) -> None:
    is_then = stored.progress.to_send[0] == "then"
    outer = _of_number(tx, stored.progress.outer) if is_then else None
    takes = outer is not None and outer.progress.ended_at is None
    sent = next_to_send(stored, outer_takes=takes)
    outcome: Produced | ForqError | None = check_all_unbound(sent.queues, tx.state.settings.get)
    for queue in sent.queues:
        outcome = outcome or tx.name(queue, stored.made_by or "")
    if outcome is None:
        found = send(tx, sent.queue, (sent.message,), tx.state.last_seq)
        outcome = found[0] if isinstance(found, tuple) else found
    if isinstance(outcome, Produced) and outer is not None and takes:
        tx.state.batch_members[outcome.sequence] = outer.number, "left"
    _save(tx, stored, after_sending(stored, outcome, tx.now_ms))
