"""docs/queues.md names everything that a message can say and that can be set for a queue, and nothing else."""

import re
from pathlib import Path

import msgspec

from forq_trio.model.messages import NewMessage
from forq_trio.model.queue_settings import Order, Overflow, SettingsChange

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
    assert rows_below("What a message can say") == members | {"processAfter"}


def test_every_setting_is_documented() -> None:
    members = {field.encode_name for field in msgspec.structs.fields(SettingsChange)}
    assert rows_below("What can be set for a queue") == members


def test_every_word_of_a_setting_is_documented() -> None:
    for word in [*Overflow, *Order]:
        assert f"`{word.value}`" in PAGE
