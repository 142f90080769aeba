"""What the writer does for message batches without a command: counts members, sends what follows, expires, forgets.

- `Transaction.transition` notes each message that ends or moves, and a batch inside of another one is noted when it
  ends. After the commands the noted ones that are members are found with one statement, and counted batch by batch.
- All of this has one allowance. Members that it leaves over wait in their table, and are counted by the next batches of
  the writer: in the order in which the batches began to wait, and all of a batch at once. What follows from them is
  sent in the commit that counts them, again as far as the allowance permits, and if it may store messages.
- What claims remove is counted after them, and what follows from it is sent by the next batch of the writer.
- Each batch is counted by itself. One that cannot be read is tried again after SET_ASIDE_RETRY_MS; its members wait.
  It is forgotten when it is due and its time is over, however it was opened.
- A member of a batch that is over, or forgotten, is forgotten with its next change.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.errors import ForqError
from forq_trio.model.message_batches.types import AddressedMessage
from forq_trio.model.messages.types import Produced
from forq_trio.storage.engine import Deferred
from forq_trio.storage.message_batches import (
    GONE,
    State,
    StoredMessageBatch,
    after_sending,
    counted,
    expired,
    next_to_send,
    with_retries,
)
from forq_trio.storage.relational.operations.message_batches_stored import (
    forget,
    forget_damaged,
    forget_members,
    outer_of,
    read,
    read_batch,
    read_sends,
    save,
)
from forq_trio.storage.relational.operations.send import send
from forq_trio.storage.relational.own_work import OWN_WORK, OwnWork
from forq_trio.storage.relational.transaction import Transaction

STEP = "message_batches"
"""The step whose allowance bounds what a batch of the writer does for batches."""


class MemberChange(NamedTuple):
    """A change of a member."""

    number: int  # the sequence number of the message, or the number of the batch inside
    before: State  # as it is counted
    after: State


def follow(tx: Transaction, *, sends: bool) -> None:
    """Count what became of members in this batch of the writer, and send what follows. sends: whether it may send."""
    tx.begin_step()
    while tx.message_batches.noted or (sends and tx.message_batches.sends):
        _count_noted(tx)
        if sends and tx.message_batches.sends:
            _do_due(tx)


def _count_noted(tx: Transaction) -> None:
    """Count the noted members, as far as the allowance permits and if no earlier ones of their batches wait."""
    noted = dict(tx.message_batches.noted)
    tx.message_batches.noted = []
    if not noted:
        return
    changes: dict[int, list[MemberChange]] = {}
    numbers: set[int] = set()
    forgotten: list[int] = []
    for member, number, before, is_over, counts_at in tx.query_without_inserts(
        "find_batch_members", str(list(noted))
    ):
        if is_over is None or is_over:
            forgotten.append(member)
            continue
        changes.setdefault(number, []).append(MemberChange(member, before, noted[member]))
        if counts_at is None:
            numbers.add(number)
    done = _count_now(tx, sorted(numbers), changes)
    for number in done:
        del changes[number]
    if changes:
        _let_wait(tx, changes, tx.now_ms)
    forget_members(tx, forgotten)


def _count_now(
    tx: Transaction, numbers: Sequence[int], changes: Mapping[int, Sequence[MemberChange]]
) -> Sequence[int]:
    """Count the changes of members of batches, as far as the allowance permits; returns the batches that are done."""
    allowance = tx.allowances.of(STEP)
    numbers = numbers[: -(-max(allowance.messages, 0) // limits.MESSAGE_BATCH_WEIGHT)]
    if allowance.used_up or not numbers:
        return ()
    allowance.charge(limits.MESSAGE_BATCH_WEIGHT * len(numbers), 0)
    written: list[MemberChange] = []
    damaged: dict[int, Sequence[MemberChange]] = {}
    known = {} if tx.isolated else _read_many(tx, numbers)
    for number in numbers:
        if not tx.isolated:
            written += _count(tx, known.get(number) or read(tx, number), changes[number])
            continue
        did: list[MemberChange] = []
        error = tx.attempt(lambda did=did, key=number: did.extend(_count(tx, read(tx, key), changes[key])))  # type: ignore[misc]
        written += did
        if error is not None:
            tx.set_aside.note(f"batch {number}", error)
            damaged[number] = changes[number]
    _write_members(tx, written)
    if damaged:
        _let_wait(tx, damaged, tx.now_ms + limits.SET_ASIDE_RETRY_MS)
    return numbers


def _read_many(tx: Transaction, numbers: Sequence[int]) -> dict[int, StoredMessageBatch]:
    """These batches, with one wait, but those that cannot be read."""
    known: dict[int, StoredMessageBatch] = {}
    for row in tx.query_without_inserts("read_message_batches", str([*numbers])):
        with suppress(msgspec.MsgspecError):
            stored = read_batch(row)
            known[stored.number] = stored
    return known


def _count(
    tx: Transaction, stored: StoredMessageBatch, changes: Sequence[MemberChange], *, may_end: bool = True
) -> Sequence[MemberChange]:
    """Count changes of members of a batch; returns them as they are to be written. may_end: see `counted`."""
    if stored.progress.ended_at is not None:  # nobody counts its members any more
        return [each._replace(after="removed") for each in changes]
    states = [(before, after) for _, before, after in changes]
    save(tx, stored, counted(stored, states, tx.now_ms, may_end=may_end))
    return changes


def _write_members(tx: Transaction, changes: Iterable[MemberChange]) -> None:
    """Note as what members are counted."""
    gone, stay = _by_state(changes)
    for state, members in stay.items():
        tx.query_without_inserts("mark_batch_members", state, str(members))
    forget_members(tx, gone)


def _by_state(changes: Iterable[MemberChange]) -> tuple[list[int], dict[State, list[int]]]:
    """The members that are gone, and the others by the state that they have now."""
    gone: list[int] = []
    stay: dict[State, list[int]] = {}
    for member, _, after in changes:
        (gone if after in GONE else stay.setdefault(after, [])).append(member)
    return gone, stay


def _let_wait(tx: Transaction, changes: Mapping[int, Sequence[MemberChange]], at_ms: int) -> None:
    """Note what became of members, by their batches, to be counted at a time; or when others of the batch are."""
    states: dict[State, list[int]] = {}
    for member, _, after in (change for each in changes.values() for change in each):
        states.setdefault(after, []).append(member)
    for state, members in states.items():
        tx.query_without_inserts("await_count_of_members", state, str(members))
    tx.query_without_inserts("await_counts", at_ms, str([*changes]))
    tx.message_batches.let_wait(at_ms)


def count_waiting(tx: Transaction, number: int) -> bool:
    """Count the members of a batch that wait; False if they are too many for once, so that others wait on."""
    most = limits.COMMIT_MESSAGES_MAX
    changes = [MemberChange(*row) for row in tx.query("members_to_count", number, most)]
    all_counted = len(changes) < most
    stored = read(tx, number)
    _write_members(tx, _count(tx, stored, changes, may_end=all_counted))
    if all_counted:
        tx.query("set_counts_at", None, number)
        tx.message_batches.note_over(stored)
        tx.message_batches.counts_changed = True
    tx.allowances.of(STEP).charge(limits.MESSAGE_BATCH_WEIGHT + len(changes), 0)
    return all_counted


def _count_in_turn(tx: Transaction, number: int) -> bool:
    """`count_waiting` as work of `_do_each`: what is left over uses up the allowance, so it waits by itself."""
    count_waiting(tx, number)
    return True


def run_due(tx: Transaction) -> None:
    """Do what is due for batches, as far as the allowance permits: count what waits, send, expire, forget."""
    tx.begin_step()
    _do_due(tx)


def _do_due(tx: Transaction) -> None:
    _do_each(tx, _next_to_count, _count_in_turn, _count_later)
    _do_each(tx, _next_due, _run, _run_later)
    tx.message_batches.sends = False  # what is left is due, so the next batch of the writer goes on


def _next_to_count(tx: Transaction) -> Sequence[tuple[int, str]]:
    """The batch of which members wait for the longest time to be counted, if that is due; its number and its id."""
    part = tx.message_batches
    from_ms = part.totals.counts_at
    if from_ms is None or from_ms > tx.now_ms:
        return ()
    found = tx.query("message_batch_to_count", from_ms, tx.now_ms)
    if not found:
        part.counts_changed = True
    return found


def _count_later(tx: Transaction, number: int, at_ms: int) -> None:
    tx.query("set_counts_at", at_ms, number)
    tx.message_batches.counts_changed = True


def _next_due(tx: Transaction) -> Sequence[tuple[int, str]]:
    """The batch that is due for the longest time, if any; its number and its id."""
    part = tx.message_batches
    from_ms = part.due_from
    if from_ms > tx.now_ms:
        return ()
    found = tx.query("due_message_batch", from_ms, tx.now_ms)
    if not found:
        part.totals = replace(part.totals, first=None)
    return found


def _run_later(tx: Transaction, number: int, at_ms: int) -> None:
    if not forget_damaged(tx, number):
        tx.query("set_batch_due_at", at_ms, number)
        tx.message_batches.due_times[number] = at_ms


def _do_each(
    tx: Transaction,
    next_one: Callable[[Transaction], Sequence[tuple[int, str]]],
    work: Callable[[Transaction, int], bool],
    later: Callable[[Transaction, int, int], None],
) -> None:
    """Do the work on one batch after the other, until one has to wait.

    later: sets when one is tried again that could not be read in an isolated batch of the writer.
    """
    allowance, waits = tx.allowances.of(STEP), False
    while not (allowance.used_up or waits or tx.waited_out):
        found = next_one(tx)
        if not found:
            return
        number, id = found[0]
        if not tx.isolated:
            waits = not work(tx, number)
            continue
        did: list[bool] = []
        error = tx.attempt(lambda did=did, key=number: did.append(work(tx, key)))  # type: ignore[misc]
        if error is None:
            waits = not did[0]
        else:
            later(tx, number, tx.now_ms + limits.SET_ASIDE_RETRY_MS)
            tx.set_aside.note(f"batch {id}", error)
            allowance.charge(limits.MESSAGE_BATCH_WEIGHT, 0)


def _run(tx: Transaction, number: int) -> bool:
    """Do the next thing that is due for a batch; False if it has to wait for the next batch of the writer."""
    stored = read(tx, number)
    size = 0
    if stored.progress.unsent:
        if not _send_next(tx, stored):
            return False
        size = stored.size
    elif stored.progress.ended_at is None:
        save(tx, stored, expired(stored, tx.now_ms))
    else:
        forget(tx, number)
    tx.allowances.of(STEP).charge(limits.MESSAGE_BATCH_WEIGHT, size)
    return True


def _send_next(tx: Transaction, stored: StoredMessageBatch) -> bool:
    """Send the next message of a batch; False if that has to wait. New queues count for the token that opened it."""
    sending = with_retries(stored)
    outer = outer_of(tx, stored) if sending.progress.to_send[0] == "then" else None
    sent = next_to_send(replace(sending, new=read_sends(tx, stored.number)), outer_takes=outer is not None)
    outcome = _send(tx, sent, stored.made_by or "")
    if isinstance(outcome, Deferred):
        return False
    if isinstance(outcome, Produced) and outer is not None:
        tx.query("replace_batch_member", outcome.sequence, stored.number)
    save(tx, stored, after_sending(sending, outcome, tx.now_ms))
    return True


def _send(tx: Transaction, sent: AddressedMessage, made_by: str) -> Produced | ForqError | Deferred:
    if (refusal := tx.check_takes_messages(*sent.queues)) is not None:
        return refusal
    for queue in sent.queues:
        if (refusal := tx.name(queue, made_by)) is not None:
            return refusal
    outcome = send(tx, sent.queue, (sent.message,))
    tx.write_inserts()
    return outcome[0] if isinstance(outcome, list) else outcome


def _due_at(tx: Transaction) -> int | None:
    """When there is something to do next."""
    tx.message_batches.find_next(tx.query)
    return tx.message_batches.due_at


OWN_WORK.append(OwnWork(_due_at, run_due, follow=follow))
