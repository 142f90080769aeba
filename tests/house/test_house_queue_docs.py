"""What a message can say and what can be set for a queue is documented as it is declared, and nothing else."""

import re
from pathlib import Path

from forq_trio.model.messages.new_message import OPTIONS, MessageOptions, NewMessage
from forq_trio.model.queues.setting_values import Defaults
from forq_trio.model.queues.settings import SETTINGS, QueueRules, QueueSettings, SettingsOptions, rules_of
from support.settings import EVERYTHING, EXAMPLES

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "queues.md").read_text(encoding="utf-8")


def rows_below(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without marks of code."""
    text = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [
        [cell.strip().replace("`", "") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in text.splitlines()
        if line.startswith("| `")
    ]


def test_every_option_of_a_message_is_documented_as_it_is_declared() -> None:
    content, *rows = rows_below("Options of a message")
    assert content[0] == "content"
    assert [row[:3] + row[4:] for row in rows] == [
        [each.json_name, f"--{each.option}", each.says(), each.default] for each in OPTIONS.values()
    ]
    assert [row for row in rows if not row[3]] == []


def test_every_option_of_a_message_is_in_both_classes() -> None:
    assert list(MessageOptions.__annotations__) == list(OPTIONS)
    assert list(NewMessage.__struct_fields__) == ["content", *OPTIONS]


def test_every_setting_is_documented_as_it_is_declared() -> None:
    rows = rows_below("Settings of a queue")
    assert [row[:3] for row in rows] == [
        [each.json_name, f"--{each.option}", each.meaning] for each in SETTINGS.values()
    ]
    by_name = {row[0]: row[3:] for row in rows}
    assert by_name["leaseMs"] == ["0 s to 12 h", "5 min"]
    assert by_name["maxAttempts"] == ["1 to 1,000,000", "5"]
    assert by_name["overflow"] == ["reject, drop_oldest, dead_letter", "reject"]
    assert [row for row in rows if not row[3] or not row[4]] == []


def test_every_setting_is_in_all_classes_and_among_the_examples() -> None:
    for members in (SettingsOptions.__annotations__, EXAMPLES):
        assert list(members) == list(SETTINGS)
    assert list(QueueRules.__struct_fields__) == [*SETTINGS, "paused"]
    assert list(QueueSettings.__struct_fields__) == [*SETTINGS, "paused", "table", "sqs"]
    defaults = rules_of("q", None, Defaults())
    assert [name for name, value in EVERYTHING.items() if value == getattr(defaults, name)] == []
