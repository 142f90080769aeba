"""Reads and checks changes of a queue's settings."""

import msgspec
from msgspec import UNSET

from forq_trio.model import limits
from forq_trio.model.errors import InvalidQueueName, InvalidRequest, InvalidSetting
from forq_trio.model.member_names import python_name, python_path
from forq_trio.model.messages.types import check_queue_name
from forq_trio.model.queues.names import FIFO_SUFFIX, is_fifo_queue
from forq_trio.model.queues.setting_values import BackOff, GroupOrder
from forq_trio.model.queues.settings import SETTINGS, SettingsChange, SettingsOptions, change_of


def read_change(changes: SettingsOptions) -> SettingsChange:
    """The change that these keywords name.

    Raises InvalidRequest for a value of a wrong type, and TypeError for a name that is not a setting.
    """
    given = change_of(changes)
    try:
        return msgspec.convert(msgspec.to_builtins(given), SettingsChange)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).rstrip("`").rpartition(" - at `$.")
        if not problem:
            raise InvalidRequest(path) from None
        raise InvalidRequest(f"{python_path(path)}: {problem}", field=path) from None


def invalid_setting(member: str, problem: str) -> InvalidSetting:
    """The error about one setting, by its name in JSON."""
    return InvalidSetting(f"{python_name(member)}: {problem}", field=member)


def check_change(queue: str, change: SettingsChange) -> SettingsChange:
    """Return `change`. Raises InvalidSetting, which names the member that is not valid."""
    for name, setting in SETTINGS.items():
        value = getattr(change, name)
        if setting.high and value is not UNSET and value is not None:
            _check(setting.json_name, value, setting.low, setting.high)
    if change.back_off is not UNSET and change.back_off is not None:
        _check_back_off(change.back_off)
    rate = change.rate
    if rate is not UNSET and rate is not None:
        _check("rate", rate.count, 1, limits.RATE_COUNT_MAX, "count")
        _check("rate", rate.period_ms, 1, limits.RATE_PERIOD_MS_MAX, "period_ms")
    if change.group_order is GroupOrder.FAIR and is_fifo_queue(queue):
        raise invalid_setting("groupOrder", f"a queue whose name ends in {FIFO_SUFFIX} has strict groups")
    target = change.dead_letter_queue
    if target is not UNSET and target:
        try:
            check_queue_name(target)
        except InvalidQueueName as error:
            raise invalid_setting("deadLetterQueue", str(error)) from None
        if target == queue:
            raise invalid_setting("deadLetterQueue", "it must be another queue")
    return change


def _check_back_off(back_off: BackOff) -> None:
    if isinstance(back_off, tuple):
        _check("backOff", len(back_off), 1, limits.BACKOFF_STEPS_MAX, "its length")
        for step_ms in back_off:
            _check("backOff", step_ms, 0, limits.NACK_DELAY_MS_MAX, "each delay")
        return
    _check("backOff", back_off.initial_ms, 1, limits.NACK_DELAY_MS_MAX, "initial_ms")
    _check("backOff", back_off.factor, 1, limits.BACKOFF_FACTOR_MAX, "factor")
    _check("backOff", back_off.max_ms, back_off.initial_ms, limits.NACK_DELAY_MS_MAX, "max_ms")
    _check("backOff", back_off.jitter, 0, 1, "jitter")


def _check(name: str, value: float, low: float, high: float, what: str = "it") -> None:
    if not low <= value <= high:
        raise invalid_setting(name, f"{what} must be between {low} and {high}, not {value}")
