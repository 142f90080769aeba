"""docs/cli.md says what the command itself says: every command, argument, option and exit code."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from forq_trio.cli.commands import forq
from forq_trio.cli.exits import Exit
from forq_trio.config.settings import SETTINGS
from forq_trio.model.queues import settings as queue_settings

DOCS = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
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
ELSEWHERE = {
    "serve": SETTING_OPTIONS,
    "config": SETTING_OPTIONS,
    "queue set": {f"--{setting.option}" for setting in queue_settings.SETTINGS.values()},
}
"""Options that another page explains, which has a test of its own."""


def section(name: str) -> str:
    """The text below a heading, up to the next one."""
    found = re.search(rf"^##+ {re.escape(name)}\n(.*?)(?=^##|\Z)", DOCS, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no section {name!r}"
    return found[1]


def test_every_command_has_its_section_in_the_order_of_the_help():
    assert re.findall(r"^## forq (\w+)$", DOCS, re.MULTILINE) == forq.list_commands(ROOT)
    assert re.findall(r"^##+ forq ([\w ]+)$", DOCS, re.MULTILINE) == list(COMMANDS)


def test_usage_and_options_are_documented_as_they_are():
    for name, context in COMMANDS.items():
        check_section(name, context)


def check_section(name: str, context: click.Context) -> None:
    text = section(f"forq {name}")
    usage = " ".join(["forq", name, *context.command.collect_usage_pieces(context)])
    assert f"```\n{usage}\n```" in text, name
    elsewhere = ELSEWHERE.get(name, set())
    own = [
        each
        for each in context.command.params
        if isinstance(each, click.Option) and not elsewhere & set(each.opts)
    ]
    records = [record for each in own if (record := each.get_help_record(context)) is not None]
    # A bar within a cell is written with a backslash.
    text = text.replace("\\|", "|")
    expected = [(f"`{spelling}`", meaning.replace("  [", " [")) for spelling, meaning in records]
    assert re.findall(r"^\| (`-.*?`) \| (.*) \|$", text, re.MULTILINE) == expected


@pytest.mark.parametrize("name", ["serve", "config"])
def test_every_setting_that_is_no_secret_is_an_option(name: str):
    options = {option for each in COMMANDS[name].command.params for option in each.opts}
    assert options >= SETTING_OPTIONS
    assert {option for option in options if "secret" in option} == {"--auth-secret-file"}  # no secret itself


def test_every_command_and_option_has_a_help_text():
    for name, context in COMMANDS.items():
        command = context.command
        assert command.help, name
        assert command.short_help, name
        assert all(each.help for each in command.params if isinstance(each, click.Option)), name


def test_every_exit_code_is_documented():
    from forq_trio.app import FORCED_EXIT_CODE

    documented = {int(code) for code in re.findall(r"^\| `(\d+)` \|", section("Exit codes"), re.MULTILINE)}
    assert documented == {*Exit, FORCED_EXIT_CODE}
