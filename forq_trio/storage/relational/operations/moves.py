"""Commands on single messages by their ids: redrive, delete, cancel, and resubmit a copy."""

from collections.abc import Hashable, Sequence
from json import dumps

from forq_trio.model.commands import Cancel, CancelRunning, Delete, Redrive, Resubmit
from forq_trio.model.errors import ForqError, MessageInFlight, MessageNotFound
from forq_trio.model.messages.attributes import replaced
from forq_trio.model.messages.types import NewMessageWithDefaultBound, Produced, Status
from forq_trio.storage.allowance import Allowance, Step
from forq_trio.storage.engine import CLEANED_UP, DEFERRED, REQUEUED, Deferred
from forq_trio.storage.relational.operations.dead_letters import (
    read_all_waiting,
    remove,
    remove_for_user,
    transfer,
    without_waiting,
)
from forq_trio.storage.relational.operations.find_messages import find_by_id
from forq_trio.storage.relational.operations.logs import note_reasons
from forq_trio.storage.relational.operations.redrives import refused, take_step
from forq_trio.storage.relational.operations.send import is_bounded, send
from forq_trio.storage.relational.operations.table import operation, operation_on_each
from forq_trio.storage.relational.operations.waiting import restore_keys
from forq_trio.storage.relational.row import Row, read_attributes, rows_of
from forq_trio.storage.relational.transaction import Transaction


def _changes_of_messages(_: Transaction, command: Redrive | Delete) -> Sequence[Hashable]:
    return command.message_ids


def _changes_of_copy(tx: Transaction, command: Resubmit) -> list[Hashable]:
    """Its message. If the copy may evict others, or its original may be evicted: any message of a bounded queue."""
    queues = command.queue, command.target
    may_evict = any(queue is None or is_bounded(tx.rules(queue)) for queue in queues)
    return [command.message_id, *["evicted"] * may_evict]


@operation_on_each(Redrive, changes=_changes_of_messages)
def redrive(tx: Transaction, command: Redrive) -> tuple[bool, ...] | ForqError | Deferred:
    allowance = tx.allowances.of(Redrive)
    if allowance.used_up:
        return DEFERRED
    if refusal := refused(tx, command.step):
        return refusal
    if command.target and (refusal := tx.admit(command.target)):
        return refusal
    found = _named(tx, allowance, command.queue, command.message_ids)
    rows: list[tuple[object, ...]] = []
    keyed: list[tuple[str, str, int]] = []
    waiting = read_all_waiting(tx, list(found.values()))
    results = []
    for message_id in command.message_ids:
        message = found.get(message_id)
        target = None if message is None else command.target or message.source_queue
        moved = (
            message is not None
            and target is not None
            and target != message.queue
            and tx.check_takes_messages(target) is None
        )
        if message is not None and moved:
            (alone,) = without_waiting(tx, [found.pop(message_id)], waiting=waiting)
            rows.append(_redriven(tx, alone, str(target)))
            if message.kind is not None:
                keyed.append((str(target), message.kind, message.seq))
        results.append(moved)
    tx.run("redrive", rows)
    restore_keys(tx, keyed)
    take_step(tx, command.step, len(rows))
    return tuple(results)


def _redriven(tx: Transaction, message: Row, target: str) -> tuple[object, ...]:
    """Note a redrive; returns the bindings of `redrive`."""
    is_dlq, position, expires_after = transfer(tx, message, target, message.ttl_ms, REQUEUED)
    return target, is_dlq, position, tx.now_ms, tx.now_ms, expires_after, message.seq


@operation_on_each(Delete, changes=_changes_of_messages)
def delete(tx: Transaction, command: Delete) -> tuple[bool, ...] | ForqError | Deferred:
    allowance = tx.allowances.of(Delete)
    if allowance.used_up:
        return DEFERRED
    if refusal := refused(tx, command.step):
        return refusal
    found = _named(tx, allowance, command.queue, command.message_ids)
    removed = [found.pop(message_id, None) for message_id in command.message_ids]
    present = [message for message in removed if message is not None]
    remove_for_user(tx, present)
    take_step(tx, command.step, len(present))
    return tuple(message is not None for message in removed)


@operation(Cancel)
def cancel(tx: Transaction, commands: Sequence[Cancel]) -> list[ForqError | Deferred | None]:
    return _cancel(tx, commands, running=False)


@operation(CancelRunning)
def cancel_running(tx: Transaction, commands: Sequence[CancelRunning]) -> list[ForqError | Deferred | None]:
    tx.withdrawn.reasons = {command.message_id: command.reason for command in commands if command.reason}
    return _cancel(tx, commands, running=True)


def _cancel(
    tx: Transaction, commands: Sequence[Cancel | CancelRunning], *, running: bool
) -> list[ForqError | Deferred | None]:
    """running: also messages in process."""
    allowance = tx.allowances.of(type(commands[0]))
    named, later = find_by_id(tx, [(command.queue, command.message_id) for command in commands])
    found = {message.id: message for message in named}
    outcomes: list[ForqError | Deferred | None] = []
    removed = []
    for command in commands:
        if allowance.used_up or command.message_id in later:
            outcomes.append(DEFERRED)
            continue
        message = found.get(command.message_id)
        if message is None or message.queue != command.queue:
            outcomes.append(MessageNotFound())
        elif message.status == Status.PROCESSING and not running:
            outcomes.append(MessageInFlight())
        else:
            outcomes.append(None)
            allowance.charge(1, message.bytes)
            removed.append(found.pop(message.id))
    reasons = tx.withdrawn.reasons
    note_reasons(tx, [(message, reasons[message.id]) for message in removed if message.id in reasons])
    remove(tx, removed, CLEANED_UP, "cancelled")
    return outcomes


def _named(tx: Transaction, allowance: Allowance, queue: str, message_ids: Sequence[str]) -> dict[str, Row]:
    """The messages with these ids that are in `queue` and not processing, by id. They are charged to the allowance."""
    found = {
        message.id: message
        for message in rows_of(tx.query("find_by_id", dumps(message_ids)))
        if message.queue == queue and message.status != Status.PROCESSING
    }
    allowance.charge(len(found), sum([message.bytes for message in found.values()]))
    return found


@operation_on_each(Resubmit, changes=_changes_of_copy)
def resubmit(tx: Transaction, command: Resubmit) -> Produced | ForqError | Deferred | None:
    copying = tx.allowances.of(Resubmit)
    if copying.used_up or tx.allowances.used_up(Step.EVICT):
        return DEFERRED
    found, later = find_by_id(tx, [(command.queue, command.message_id)])
    if later:
        return DEFERRED
    if not found or found[0].queue != command.queue:
        return None
    original = found[0]
    copying.charge(1, original.bytes)
    target = command.target or original.source_queue
    if target is None or (command.remove and original.status == Status.PROCESSING):
        return None
    ((priority, default_max_receives, stored_attributes, content),) = tx.query("read_message", original.seq)
    attributes = read_attributes(stored_attributes)
    copy = NewMessageWithDefaultBound(
        content if command.content is None else command.content,
        priority=priority,
        ttl_ms=original.ttl_ms,
        attributes=tx.attributes_of_copy(
            attributes if command.attributes is None else replaced(attributes, command.attributes)
        ),
        group=original.group_id or None,
        max_attempts=original.max_attempts,
        dead_letter_queue=original.dead_letter_queue,
        default_max_receives=default_max_receives,
    )
    stored: list[Produced | ForqError] = []

    def replace() -> None:
        if command.remove:
            # Before the send: the original must neither take the space of its copy nor be evicted for it.
            remove_for_user(tx, [original])
        sent = send(tx, target, (copy,))
        assert not isinstance(sent, Deferred)  # the allowance was checked before
        tx.write_inserts()
        stored.extend([sent] if isinstance(sent, ForqError) else sent)
        if command.remove and isinstance(sent, ForqError):
            raise sent

    if not command.remove or (
        not is_bounded(tx.rules(target)) and tx.admit(target, *_named_by(copy)) is None
    ):
        replace()
        return stored[0]
    # In a savepoint, so that a refused copy undoes the removal and nothing else of the batch.
    error = tx.attempt(replace)
    if error is None or isinstance(error, ForqError):
        return error or stored[0]
    raise error


def _named_by(message: NewMessageWithDefaultBound) -> tuple[str, ...]:
    """The dead-letter queue that it names."""
    return (message.dead_letter_queue,) if message.dead_letter_queue else ()
