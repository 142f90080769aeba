"""What every engine refuses for queues that are bound to a table of an application."""

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from forq_trio.model.errors import ForqError, InvalidSetting, QueueBound, QueueNotBound, QueueNotEmpty
from forq_trio.model.queues.names import is_dead_letter_queue
from forq_trio.model.queues.setting_checks import invalid_setting
from forq_trio.model.queues.settings import OF_TABLES, SETTINGS, QueueSettings, QueueTable


def check_table(
    queue: str, table: QueueTable | None, messages: int, settings: Mapping[str, QueueSettings]
) -> ForqError | None:
    """Why a queue cannot be bound to this table (None: be unbound). settings: of all queues that have any."""
    own = settings.get(queue, QueueSettings())
    if table is None:
        return QueueNotBound() if own.table is None else None
    if table == own.table:
        return None
    if messages:
        return QueueNotEmpty()
    for other, each in settings.items():
        if each.table == table:
            return QueueBound(f"the table {table.table!r} is bound to the queue {other} already")
        if each.dead_letter_queue == queue:
            return QueueBound(f"the queue takes the dead letters of {other}")
    if is_dead_letter_queue(queue):
        return QueueBound("a dead-letter queue cannot be bound to a table")
    return check_settings_of_table(replace(own, table=table))


def check_settings_of_table(settings: QueueSettings) -> InvalidSetting | None:
    """InvalidSetting if one of these settings has no meaning for a queue that is bound to a table."""
    if settings.table is None:
        return None
    others = [name for name in SETTINGS if name not in OF_TABLES and getattr(settings, name) is not None]
    if not others and not settings.paused:
        return None
    first = SETTINGS[others[0]].json_name if others else "paused"
    return invalid_setting(first, "it cannot be kept for a queue that is bound to a table")


def check_unbound(settings: QueueSettings | None) -> QueueBound | None:
    """QueueBound if the queue's messages are in a table, because it takes no others."""
    return None if settings is None or settings.table is None else QueueBound()


def check_all_unbound(
    queues: Iterable[str | None], settings_of: Callable[[str], QueueSettings | None]
) -> QueueBound | None:
    """`check_unbound` for several queues; each None is skipped."""
    for queue in queues:
        if queue and (bound := check_unbound(settings_of(queue))):
            return bound
    return None
