"""The settings of a queue in words, for the side of its page. Plain functions."""

from forq_trio.model.queues.setting_types import FormSection
from forq_trio.model.queues.settings import OF_TABLES, SETTINGS, QueueRules, QueueSettings
from forq_trio.ui.settings_form import value_words

_BOUNDS = ("max_messages", "max_bytes")
_OF_TABLES = [SETTINGS[name] for name in OF_TABLES]
_IN_ORDER = [
    setting for section in FormSection for setting in SETTINGS.values() if setting.section is section
]


def set_ones(settings: QueueSettings, rules: QueueRules) -> list[tuple[str, str, str]]:
    """The settings that were set: label, words, and the queue that the value names, or ""."""
    found: list[tuple[str, str, str]] = []
    is_bounded = any(getattr(rules, name) is not None for name in _BOUNDS)
    overflow = value_words(SETTINGS["overflow"], rules.overflow)
    for setting in _IN_ORDER:
        value, queue = getattr(settings, setting.name), ""
        if value is None or (setting.name == "overflow" and is_bounded):
            continue
        words = value_words(setting, value)
        if setting.name == "max_attempts" and value >= setting.high:
            words = "unbounded"
        elif setting.name in _BOUNDS:
            words = f"{words}, then {overflow}"
        elif setting.name == "dead_letter_queue":
            words, queue = value or "none, they are deleted", value
        found.append((setting.label, words, queue))
    return found


def default_ones(settings: QueueSettings, rules: QueueRules) -> str:
    """The settings that were not set, in one line."""
    left = []
    for setting in _IN_ORDER if settings.table is None else _OF_TABLES:
        if getattr(settings, setting.name) is None and setting.phrase is not None:
            value = getattr(rules, setting.name)
            is_none = setting.name == "dead_letter_queue" and not value
            left.append("no dead letters" if is_none else setting.phrase.format(value_words(setting, value)))
    if settings.table is None and all(getattr(settings, name) is None for name in _BOUNDS):
        left.append("no bound")
    if not left:
        return ""
    line = ", ".join(left)
    return f"{line[:1].upper()}{line[1:]}: {'default' if len(left) == 1 else 'defaults'}."
