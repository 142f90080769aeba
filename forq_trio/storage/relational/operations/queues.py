"""Commands on a queue as a whole: change settings, pause, purge, forget."""

from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import BindTable, Configure, ForgetQueue, NameQueues, Pause, Purge, PurgeStep
from forq_trio.model.errors import ForqError, InvalidSetting, Overloaded
from forq_trio.model.queues.settings import QueueSettings
from forq_trio.storage.allowance import Allowance, within
from forq_trio.storage.bound_tables import check_settings_of_table, check_table
from forq_trio.storage.engine import DEFERRED, Deferred
from forq_trio.storage.relational.operations.dead_letters import drop
from forq_trio.storage.relational.operations.dedup import forget_windows
from forq_trio.storage.relational.operations.find_messages import find_oldest
from forq_trio.storage.relational.operations.isolation import settle_each
from forq_trio.storage.relational.operations.table import operation_on_each
from forq_trio.storage.relational.row import write_settings
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import check_dead_letters_end


def set_settings(tx: Transaction, queue: str, settings: QueueSettings) -> None:
    """Change the settings of a queue, in memory and in the table. A queue without settings has no row."""
    if settings == QueueSettings():
        tx.query("forget_settings", queue)
    else:
        tx.query("save_settings", queue, write_settings(settings), tx.now_ms)
    tx.settings.set(queue, settings)
    tx.scans.forget(queue)  # its order may have changed


@operation_on_each(Configure)
def configure(tx: Transaction, command: Configure) -> QueueSettings | ForqError:
    queue = command.queue
    old = tx.settings.of(queue)
    new = old.reset() if command.change is None else old.changed(command.change)
    try:
        if command.details is not None:
            new = new.with_details(command.details)
    except InvalidSetting as error:
        return error
    refusal = (
        check_settings_of_table(new) or _check_dead_letters(tx, queue, new) or _admit(tx, queue, old, new)
    )
    if refusal is None and command.details is not None:  # with settings alone it would be in no list
        refusal = tx.name(queue, command.made_by)
    if refusal is not None:
        return refusal
    limited = (new.group_in_flight_max, new.rate, new.group_order)
    if limited != (old.group_in_flight_max, old.rate, old.group_order) and tx.counts.of(queue).held:
        tx.grouped.move_unhold_cursor(queue, 0)
    if (new.in_flight_max, new.rate) != (old.in_flight_max, old.rate):
        tx.wakes.woken.add(queue)
    if new.rate != old.rate:
        tx.rates.full_at[queue] = 0
    set_settings(tx, queue, new)
    return new


def _admit(tx: Transaction, queue: str, old: QueueSettings, new: QueueSettings) -> ForqError | None:
    """The error if there are too many queues for these settings, or for the dead-letter queue that they name."""
    refusal: ForqError | None = None if new == QueueSettings() else tx.admit_settings(queue)
    target = new.dead_letter_queue
    if refusal is None and target and target != old.dead_letter_queue:
        refusal = tx.admit(target)
    return refusal


def _check_dead_letters(tx: Transaction, queue: str, settings: QueueSettings) -> InvalidSetting | None:
    """InvalidSetting if dead letters would not come to an end soon with these settings, else None."""
    rules = tx.settings.rules_with(queue, settings)
    try:
        check_dead_letters_end(
            queue,
            tx.rules(queue).dead_letter_queue,
            lambda name: (rules if name == queue else tx.rules(name)).dead_letter_queue,
        )
    except InvalidSetting as error:
        return error
    return None


@operation_on_each(NameQueues)
def name(tx: Transaction, command: NameQueues) -> tuple[ForqError | None, ...]:
    return tuple([tx.name(queue, command.made_by) for queue in command.queues])


@operation_on_each(Pause)
def pause(tx: Transaction, command: Pause) -> Overloaded | None:
    queue, paused = command.queue, command.paused
    settings = tx.settings.of(queue)
    if settings.paused == paused:
        return None
    refusal = tx.admit_settings(queue) if paused else None
    if refusal is None:
        set_settings(tx, queue, replace(settings, paused=paused))
        if not paused:
            tx.wakes.woken.add(queue)
    return refusal


@operation_on_each(BindTable)
def bind(tx: Transaction, command: BindTable) -> ForqError | None:
    queue, table = command.queue, command.table
    refusal = check_table(queue, table, tx.counts.of(queue).total, tx.settings.all())
    if refusal is None and table is not None:
        refusal = tx.admit(queue) if tx.settings.of(queue).table is None else None
        refusal = refusal or tx.admit_settings(queue)
    if refusal is None:
        set_settings(tx, queue, replace(tx.settings.of(queue), table=table))
        tx.counts.make_known(queue)
    return refusal


@operation_on_each(Purge, changes=lambda _, command: [command.queue])
def purge(tx: Transaction, command: Purge) -> PurgeStep:
    bound = tx.allowances.step(limits.PURGE_BATCH_MAX)
    up_to = tx.sequence.before if command.up_to is None else command.up_to
    found, all_to = find_oldest(tx, command.queue, up_to, bound + 1)
    purged = within(Allowance(bound), found)
    removed = settle_each(tx, purged, drop)
    more = (len(found) > len(purged) and removed) or all_to < up_to
    return PurgeStep(removed, up_to if more else None)


@operation_on_each(ForgetQueue, changes=lambda _, command: [command.queue])
def forget(tx: Transaction, command: ForgetQueue) -> bool | InvalidSetting | Deferred:
    queue = command.queue
    if tx.counts.of(queue).total > command.messages_max:
        return False
    refusal = _check_dead_letters(tx, queue, QueueSettings())
    if refusal is not None:
        return refusal
    if tx.counts.of(queue).total:
        up_to = tx.sequence.last
        found, all_to = find_oldest(tx, queue, up_to, command.messages_max)
        removed = settle_each(tx, found, drop)
        if tx.counts.of(queue).total:
            return DEFERRED if removed or all_to < up_to else False  # False: what is left is damaged
    if not forget_windows(tx, queue, tx.allowances.of(ForgetQueue)):
        return DEFERRED
    tx.counts.forget(queue)
    tx.grouped.forget(queue)
    if tx.heads is not None:
        tx.heads.forget(queue)
    set_settings(tx, queue, QueueSettings())
    return True
