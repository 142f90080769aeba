"""The reference engine: commands on queues as a whole, on dead letters, and on access tokens."""

import msgspec

from forq_trio.model import limits
from forq_trio.model.commands import (
    BindTable,
    Cancel,
    CancelRunning,
    Configure,
    Delete,
    ForgetQueue,
    NameQueues,
    NoteTokenUse,
    Pause,
    Purge,
    PurgeStep,
    Redrive,
    RevokeToken,
    SaveToken,
)
from forq_trio.model.errors import ForqError, MessageInFlight, MessageNotFound, TokenExists, TooManyTokens
from forq_trio.model.messages.types import Status
from forq_trio.model.queues.settings import QueueSettings
from forq_trio.storage import bound_tables, rules
from oracle.operations import operation
from oracle.redrives import check_step, take_step
from oracle.send import store_waiting
from oracle.state import Row
from oracle.transaction import Transaction


@operation(Configure)
def configure(tx: Transaction, command: Configure) -> QueueSettings:
    queue, change = command.queue, command.change
    old = tx.state.settings.get(queue, QueueSettings())
    new = old.reset() if change is None else old.changed(change)
    if command.details is not None:
        new = new.with_details(command.details)
    if (refusal := bound_tables.check_settings_of_table(new)) is not None:
        raise refusal
    _set(tx, queue, new)
    named = new.dead_letter_queue
    if named and named != old.dead_letter_queue:
        tx.check_admitted(named)
    if command.details is not None and (unnamed := tx.name(queue, command.made_by)) is not None:
        raise unnamed
    changed = {name for name in QueueSettings.__struct_fields__ if getattr(new, name) != getattr(old, name)}
    if changed & {"group_in_flight_max", "rate", "group_order"}:
        tx.unheld.add(queue)
    if changed & {"in_flight_max", "rate"}:
        tx.woken.add(queue)
    return new


@operation(NameQueues)
def name_queues(tx: Transaction, command: NameQueues) -> tuple[ForqError | None, ...]:
    return tuple([tx.name(queue, command.made_by) for queue in command.queues])


@operation(Pause)
def pause(tx: Transaction, command: Pause) -> None:
    old = tx.state.settings.get(command.queue, QueueSettings())
    if old.paused and not command.paused:
        tx.woken.add(command.queue)
    _set(tx, command.queue, msgspec.structs.replace(old, paused=command.paused))


@operation(BindTable)
def bind(tx: Transaction, command: BindTable) -> None:
    queue, table, settings = command.queue, command.table, tx.state.settings
    refusal = bound_tables.check_table(queue, table, tx.state.counts(queue).total, settings)
    if refusal is not None:
        raise refusal
    old = settings.get(queue, QueueSettings())
    if old.table is None:
        tx.check_admitted(queue)
    _set(tx, queue, msgspec.structs.replace(old, table=table))
    tx.make_known(queue)


def _set(tx: Transaction, queue: str, settings: QueueSettings) -> None:
    """Set the settings of a queue.

    Raises InvalidSetting if dead letters would not come to an end soon, Overloaded if too many queues have settings.
    """
    before = tx.rules(queue).dead_letter_queue
    new = 0
    if settings == QueueSettings():
        tx.state.settings.pop(queue, None)
    else:
        new = queue not in tx.state.settings
        tx.state.settings[queue] = settings
    rules.check_dead_letters_end(queue, before, lambda name: tx.rules(name).dead_letter_queue)
    if (refusal := rules.check_queues(new, len(tx.state.settings) - new)) is not None:
        raise refusal


@operation(Purge)
def purge(tx: Transaction, command: Purge) -> PurgeStep:
    up_to = tx.newest_before if command.up_to is None else command.up_to
    rows = [row for row in tx.state.of_queue(command.queue) if row.seq <= up_to]
    for row in rows:
        tx.clean_up(row, "deleted_by_user", with_waiting=True)
    return PurgeStep(len(rows), None)


@operation(ForgetQueue)
def forget_queue(tx: Transaction, command: ForgetQueue) -> bool:
    """Forget a queue, empty or with a few messages, with its rounds, settings and deduplication ids."""
    queue = command.queue
    rows = list(tx.state.of_queue(queue))
    if len(rows) > command.messages_max:
        return False
    for row in rows:
        tx.clean_up(row, "deleted_by_user", with_waiting=True)
    tx.state.queues.discard(queue)
    tx.state.makers.pop(queue, None)
    tx.state.grouped.discard(queue)
    tx.state.rounds = {key: position for key, position in tx.state.rounds.items() if key[0] != queue}
    tx.state.first_sends = {key: first for key, first in tx.state.first_sends.items() if key[0] != queue}
    _set(tx, queue, QueueSettings())
    return True


def _at_rest(tx: Transaction, queue: str, message_id: str) -> Row | None:
    """The message with this id, unless it is processing."""
    for row in tx.state.of_queue(queue):
        if row.id == message_id and row.status is not Status.PROCESSING:
            return row
    return None


@operation(Redrive)
def redrive(tx: Transaction, command: Redrive) -> tuple[bool, ...]:
    check_step(tx, command.step)
    if command.target:
        tx.check_admitted(command.target)
    store_waiting(tx)
    outcome = tuple(
        _redrive(tx, _at_rest(tx, command.queue, message_id), command.target)
        for message_id in command.message_ids
    )
    take_step(tx, command.step, sum(outcome))
    return outcome


def _redrive(tx: Transaction, row: Row | None, target: str | None) -> bool:
    if row is None:
        return False
    target = row.source_queue if target is None else target
    if target is None or target == row.queue or bound_tables.check_unbound(tx.state.settings.get(target)):
        return False
    tx.requeue(row, target)
    return True


@operation(Delete)
def delete(tx: Transaction, command: Delete) -> tuple[bool, ...]:
    check_step(tx, command.step)
    outcome = tuple(_delete(tx, _at_rest(tx, command.queue, each)) for each in command.message_ids)
    take_step(tx, command.step, sum(outcome))
    return outcome


def _delete(tx: Transaction, row: Row | None) -> bool:
    if row is None:
        return False
    tx.clean_up(row, "deleted_by_user")
    return True


@operation(Cancel)
def cancel(tx: Transaction, command: Cancel) -> None:
    for row in tx.state.of_queue(command.queue):
        if row.id != command.message_id:
            continue
        if row.status is Status.PROCESSING:
            raise MessageInFlight
        tx.clean_up(row, "cancelled")
        return
    raise MessageNotFound


@operation(CancelRunning)
def cancel_running(tx: Transaction, command: CancelRunning) -> None:
    for row in tx.state.of_queue(command.queue):
        if row.id == command.message_id:
            why = command.reason or row.last_error
            tx.clean_up(msgspec.structs.replace(row, last_error=why), "cancelled")
            if row.status is Status.PROCESSING:
                tx.withdrawn[-1] = tx.withdrawn[-1]._replace(reason=command.reason)
            return
    raise MessageNotFound


@operation(SaveToken)
def save_token(tx: Transaction, command: SaveToken) -> None:
    if command.token.name in tx.state.tokens:
        raise TokenExists
    if len(tx.state.tokens) >= limits.TOKENS_MAX:
        expired = [token for token in tx.state.tokens.values() if token.expired(tx.now_ms)]
        if not expired:
            raise TooManyTokens
        del tx.state.tokens[min(expired, key=lambda token: (token.expires_at, token.name)).name]
    tx.state.tokens[command.token.name] = command.token


@operation(RevokeToken)
def revoke_token(tx: Transaction, command: RevokeToken) -> bool:
    return tx.state.tokens.pop(command.name, None) is not None


@operation(NoteTokenUse)
def note_token_use(tx: Transaction, command: NoteTokenUse) -> None:
    for name, used_at in command.used.items():
        token = tx.state.tokens.get(name)
        if token is not None and used_at > (token.last_used_at or 0):
            tx.state.tokens[name] = msgspec.structs.replace(token, last_used_at=used_at)
