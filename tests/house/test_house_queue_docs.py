"""docs/queues.md names everything that a message can say and that can be set for a queue, and nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.declared import ValueKind
from forq_trio.model.messages.new_message import OPTIONS, MessageOptions, NewMessage, Option
from forq_trio.model.queues.settings import (
    SETTINGS,
    Defaults,
    QueueRules,
    QueueSettings,
    Setting,
    SettingsOptions,
    rules_of,
)
from forq_trio.ui.settings_form import value_words
from support.settings import EVERYTHING, EXAMPLES

PAGE = (Path(__file__).parents[2] / "docs" / "queues.md").read_text(encoding="utf-8")


def options_of_a_message() -> str:
    """The table of docs/queues.md."""
    rows = ["| `content` | | Any text. | up to 256 KiB of UTF-8 | |"]
    for option in OPTIONS.values():
        cells = f"`{option.json_name}`", f"`--{option.option}`", option.says(), RANGE[option.kind](option)
        rows.append(f"| {' | '.join((*cells, option.default))}".rstrip() + " |")
    return "\n".join(rows)


def number_range(option: Option) -> str:
    show = format.setting if option.kind is ValueKind.DURATION else format.whole
    return f"{show(option.low)} to {show(option.high)}"


RANGE: dict[ValueKind, Callable[[Option], str]] = {
    ValueKind.TIME: lambda option: f"up to {format.setting(limits.PROCESS_AFTER_AHEAD_MS_MAX)} ahead",
    ValueKind.DURATION: number_range,
    ValueKind.COUNT: number_range,
    ValueKind.TEXT: lambda option: f"{option.low} to {option.high} characters",
    ValueKind.PAIRS: lambda option: f"up to {option.high}",
    ValueKind.QUEUE: lambda option: "a queue's name",
}


def test_every_option_of_a_message_is_documented_as_it_is_declared() -> None:
    assert (
        f"| member | option | meaning | range | without it |\n|---|---|---|---|---|\n{options_of_a_message()}\n\n"
        in PAGE
    )


def test_every_option_of_a_message_is_in_both_classes() -> None:
    assert list(MessageOptions.__annotations__) == list(OPTIONS)
    assert list(NewMessage.__struct_fields__) == ["content", *OPTIONS]


def value_text(setting: Setting, value: Any) -> str:
    if setting.kind is ValueKind.WORD or setting.kind is ValueKind.QUEUE:
        return f"`{value}`"
    return value_words(setting, value)


def range_text(setting: Setting) -> str:
    if setting.kind is ValueKind.WORD:
        return ", ".join(f"`{word}`" for word in setting.words)
    if setting.high:
        return f"{value_text(setting, setting.low)} to {value_text(setting, setting.high)}"
    return {
        ValueKind.BACK_OFF: "see below",
        ValueKind.RATE: "see below",
        ValueKind.QUEUE: "a queue's name, no circles",
    }[setting.kind]


def row_of(setting: Setting) -> str:
    default = setting.default_text or value_text(setting, setting.default("q", Defaults()))
    cells = f"`{setting.json_name}`", f"`--{setting.option}`", setting.meaning, range_text(setting), default
    return f"| {' | '.join(cells)} |"


def test_every_setting_is_documented_as_it_is_declared() -> None:
    rows = "\n".join(row_of(setting) for setting in SETTINGS.values())
    table = "| setting | option | meaning | range | default |\n|---|---|---|---|---|\n"
    assert f"{table}{rows}\n\n" in PAGE


def test_every_setting_is_in_all_classes_and_among_the_examples() -> None:
    for members in (SettingsOptions.__annotations__, EXAMPLES):
        assert list(members) == list(SETTINGS)
    assert list(QueueRules.__struct_fields__) == [*SETTINGS, "paused"]
    assert list(QueueSettings.__struct_fields__) == [*SETTINGS, "paused", "table"]
    defaults = rules_of("q", None, Defaults())
    assert [name for name, value in EVERYTHING.items() if value == getattr(defaults, name)] == []
