"""The pages of the command line say what the command itself says: every command, option and exit code.

tests/house/test_house_reference.py compares the pages with their generator; here they are compared with click.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from forq_trio.cli.commands import forq
from forq_trio.cli.exits import Exit
from forq_trio.config.settings import SETTINGS

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
OVERVIEW = (REFERENCE / "cli.md").read_text(encoding="utf-8")
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in REFERENCE.glob("cli-*.md")}
ROOT = click.Context(forq, info_name="forq", **forq.context_settings)


def commands_of(context: click.Context, prefix: str = "") -> Iterator[tuple[str, click.Context]]:
    """Every command below the one of `context` by its name, groups before what is in them."""
    group = context.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        child = click.Context(command, info_name=name, parent=context)
        yield prefix + name, child
        if isinstance(command, click.Group):
            yield from commands_of(child, f"{prefix}{name} ")


COMMANDS = dict(commands_of(ROOT))
SETTING_OPTIONS = {setting.option for setting in SETTINGS.values() if setting.option}
ELSEWHERE = {"serve": SETTING_OPTIONS, "config": SETTING_OPTIONS}
"""Options that another page explains, which has a test of its own."""


def section(name: str) -> str:
    """The text below the heading of a command, up to the next one."""
    found = [
        text
        for page in PAGES.values()
        for text in re.findall(rf"^##+ {re.escape(name)}\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    ]
    assert len(found) == 1, f"{len(found)} sections {name!r}"
    return found[0]


def words(text: str) -> list[str]:
    """What is said, without marks, brackets and the words that name a default, a variable or a range."""
    said = re.sub(r"\\(?=[|*])", "", text)
    said = re.sub(r"\[?\b(default|env var): |Environment variable: |Allowed: ", " ", said)
    said = re.sub(r"([<>]=?)", r" \1 ", said)
    return sorted(re.findall(r"[^\s`\[\];:,.()|]+", said))


def test_every_command_has_its_section_in_the_order_of_the_help() -> None:
    for page in PAGES.values():
        named = re.findall(r"^##+ forq ([\w ]+)$", page, re.MULTILINE)
        assert named == [name for name in COMMANDS if name in named]
    assert sorted(
        name for page in PAGES.values() for name in re.findall(r"^##+ forq (.+)$", page, re.MULTILINE)
    ) == (sorted(COMMANDS))


def test_the_overview_links_every_command() -> None:
    linked = re.findall(
        r"^\| \[`forq (\w+)`\]\((cli-[\w-]+)\.md#forq-(\w+)\) \| (.+) \|$", OVERVIEW, re.MULTILINE
    )
    assert sorted(name for name, *_ in linked) == sorted(forq.list_commands(ROOT))
    for name, page, anchor, says in linked:
        assert anchor == name
        assert f"\n## forq {name}\n" in PAGES[page]
        assert words(says) == words(COMMANDS[name].command.short_help)


@pytest.mark.parametrize("name", COMMANDS)
def test_usage_and_options_are_documented_as_they_are(name: str) -> None:
    context = COMMANDS[name]
    text = section(f"forq {name}")
    usage = " ".join(["forq", name, *context.command.collect_usage_pieces(context)])
    assert f"```\n{usage}\n```" in text
    elsewhere = ELSEWHERE.get(name, set())
    own = [
        each
        for each in context.command.params
        if isinstance(each, click.Option) and not elsewhere & set(each.opts)
    ]
    records = [record for each in own if (record := each.get_help_record(context)) is not None]
    # A bar within a cell is written with a backslash.
    rows = re.findall(r"^\| `(-.*?)` \| (.*) \|$", text, re.MULTILINE)
    assert [spelling.replace("\\|", "|") for spelling, _ in rows] == [spelling for spelling, _ in records]
    assert [words(said) for _, said in rows] == [words(said) for _, said in records]


def test_the_words_of_an_option_are_told_apart() -> None:
    record = "How many.  [env var: FORQ_N; default: 1; x>=1]"
    assert words("How many. Environment variable: `FORQ_N`. Allowed: x >=1. | 1") == words(record)
    assert words("How many. Environment variable: `FORQ_N`. Allowed: x >=2. | 1") != words(record)
    assert words("How many. | 1") != words(record)


@pytest.mark.parametrize("name", ["serve", "config"])
def test_every_setting_that_is_no_secret_is_an_option(name: str) -> None:
    options = {option for each in COMMANDS[name].command.params for option in each.opts}
    assert options >= SETTING_OPTIONS
    assert not any("secret" in option for option in options)


def test_every_command_and_option_has_a_help_text() -> None:
    for name, context in COMMANDS.items():
        command = context.command
        assert command.help, name
        assert command.short_help, name
        assert all(each.help for each in command.params if isinstance(each, click.Option)), name


def test_a_command_shows_the_short_form_of_its_text() -> None:
    context = COMMANDS["send"]
    assert "\f" in context.command.help
    assert context.command.get_help(context).count("exit code") == 0
    assert "the exit code is 1" in section("forq send")


def test_every_exit_code_is_documented() -> None:
    from forq_trio.app import FORCED_EXIT_CODE

    documented = re.findall(r"^\| `(\d+)` \| (.+) \|$", OVERVIEW, re.MULTILINE)
    assert documented == [(str(int(code)), code.doc) for code in Exit]
    assert Exit.GAVE_UP == FORCED_EXIT_CODE


def test_a_help_text_has_no_other_indentation_than_its_own() -> None:
    for name, context in COMMANDS.items():
        text = context.command.get_help(context).partition("\nOptions:")[0]
        assert {len(line) - len(line.lstrip()) for line in text.splitlines() if line.strip()} <= {0, 2}, name
