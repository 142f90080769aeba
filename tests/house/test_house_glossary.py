"""docs/glossary.md explains what users and newcomers meet: one entry each, in order, and each word of a closed list."""

import re
from enum import Enum
from typing import get_args, get_type_hints

import pytest

from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.commands import COMMANDS, SweepKind
from forq_trio.model.dead_letters.redrives import RedriveState
from forq_trio.model.messages import types as messages
from forq_trio.model.messages.types import Status
from forq_trio.model.queues.setting_values import Order, Overflow
from forq_trio.storage.engine import DURATION_KINDS, EVENT_KINDS, NO_DURABILITY
from forq_trio.system import open_broker
from forq_trio.telemetry.log import LogEvent

ENTRY_LENGTH_MAX = 400


def values(words: type[Enum]) -> set[str]:
    return {word.value for word in words}


CLOSED_LISTS = {
    "States of a message": {status.name.lower() for status in Status},
    "Events": set(EVENT_KINDS),
    "Durations": set(DURATION_KINDS),
    "Reasons of a dead letter": {
        value for name, value in vars(messages).items() if name.startswith("REASON_")
    },
    "Overflow": values(Overflow),
    "Orders": values(Order),
    "Scopes": values(Scope),
    "Sweeps": values(SweepKind),
    "States of a redrive": set(get_args(RedriveState)),
    "Durability": {*get_args(get_type_hints(open_broker)["durability"]), NO_DURABILITY},
    "Subjects of log events": {event.value.partition(".")[0] for event in LogEvent},
}


@pytest.fixture(scope="module")
def parts(root) -> dict[str, str]:
    """The two parts of the page by their headings: the terms, and the words of closed lists."""
    text = (root / "docs" / "glossary.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^## (.+)\n((?:.*\n(?!## ))*.*\n?)", text, re.MULTILINE))


def entries(part: str) -> dict[str, str]:
    """What stands below each heading of a part."""
    pieces = re.split(r"^### (.+)\n", part, flags=re.MULTILINE)[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def test_the_terms_are_in_order_and_each_is_there_once(parts) -> None:
    names = re.findall(r"^### (.+)$", parts["Terms"], re.MULTILINE)
    assert len(names) > 50
    assert names == sorted(set(names), key=str.lower)


def test_an_entry_is_a_sentence_or_two(parts) -> None:
    lengths = {name: len(text.strip()) for name, text in entries(parts["Terms"]).items()}
    assert {name: n for name, n in lengths.items() if not 0 < n <= ENTRY_LENGTH_MAX} == {}


def test_every_closed_list_is_there(parts) -> None:
    assert set(entries(parts["Words of closed lists"])) == set(CLOSED_LISTS)


@pytest.mark.parametrize("name", CLOSED_LISTS)
def test_every_word_of_a_closed_list_has_its_term(parts, name) -> None:
    rows = re.findall(r"^\| (`.+?) \| (.+) \|$", entries(parts["Words of closed lists"])[name], re.MULTILINE)
    words = [word for cell, _ in rows for word in re.findall(r"`(\w+)`", cell)]
    assert sorted(words) == sorted(CLOSED_LISTS[name])
    linked = {cell: set(re.findall(r"\]\(#([\w-]+)\)", meaning)) for cell, meaning in rows}
    terms = {term.lower().replace(" ", "-") for term in entries(parts["Terms"])}
    assert {cell for cell, links in linked.items() if not links or not links <= terms} == set()


def test_a_command_is_explained_by_its_class() -> None:
    assert {kind.__name__ for kind in COMMANDS if not kind.__dict__.get("__doc__")} == set()


def test_a_page_of_a_lease_has_as_many_messages_as_it_says(parts) -> None:
    entry = entries(parts["Terms"])["page of a lease"]
    assert entry.startswith(f"Up to {limits.CONSUMER_PAGE_MESSAGES_MAX} messages")
