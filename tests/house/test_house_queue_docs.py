"""docs/queues.md names everything that a message can say and that can be set for a queue, and nothing else."""

import re
from pathlib import Path
from typing import Any

import msgspec

from forq_trio.model.messages import NewMessage
from forq_trio.model.queue_settings import (
    SETTINGS,
    Defaults,
    Kind,
    QueueRules,
    QueueSettings,
    Setting,
    SettingsOptions,
    rules_of,
)
from forq_trio.ui.settings_form import value_words
from support.settings import EVERYTHING, EXAMPLES

PAGE = (Path(__file__).parents[2] / "docs" / "queues.md").read_text(encoding="utf-8")


def rows_below(heading: str) -> set[str]:
    """The first column of the table below a heading."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def camel(name: str) -> str:
    head, *rest = name.removesuffix("_ms").split("_")
    word = head + "".join(part.capitalize() for part in rest)
    return f"{word}Ms" if name.endswith("_ms") else word


def test_every_member_of_a_message_is_documented() -> None:
    members = {camel(field.name) for field in msgspec.structs.fields(NewMessage)} - {"processAfterMs"}
    assert rows_below("Options of a message") == members | {"processAfter"}


def value_text(setting: Setting, value: Any) -> str:
    if setting.kind is Kind.WORD or setting.kind is Kind.QUEUE:
        return f"`{value}`"
    return value_words(setting, value)


def range_text(setting: Setting) -> str:
    if setting.kind is Kind.WORD:
        return ", ".join(f"`{word}`" for word in setting.words)
    if setting.high:
        return f"{value_text(setting, setting.low)} to {value_text(setting, setting.high)}"
    return {Kind.BACK_OFF: "see below", Kind.RATE: "see below", Kind.QUEUE: "a queue's name, no circles"}[
        setting.kind
    ]


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
    for kind in (QueueSettings, QueueRules):
        assert list(kind.__struct_fields__) == [*SETTINGS, "paused"]
    defaults = rules_of("q", None, Defaults())
    assert [name for name, value in EVERYTHING.items() if value == getattr(defaults, name)] == []
