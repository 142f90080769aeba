"""The command line: a page for each topic, and one that lists all commands and the exit codes."""

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

import click

from docs._generate.markdown import code, page, table, with_code, with_links
from forq_trio.cli.commands import COMMAND_GROUPS, forq
from forq_trio.cli.exits import Exit
from forq_trio.config.settings import SETTINGS

SOURCE = "the declarations in forq_trio/cli"
PAGES = {
    "Run": "run",
    "Messages": "messages",
    "Queues": "queues",
    "Dead letters and history": "dead-letters",
    "Databases": "databases",
    "Pipelines and outboxes": "pipelines",
    "Access": "access",
    "Shell": "access",
}
"""The page of each group of commands."""

TITLES = {
    "run": "Commands that run servers and workers",
    "messages": "Commands for messages",
    "queues": "Commands for queues and schedules",
    "dead-letters": "Commands for dead letters, history and events",
    "databases": "Commands for databases and backups",
    "pipelines": "Commands for pipelines and outboxes",
    "access": "Commands for access and the shell",
}
OF_SERVER = {"serve": {setting.option for setting in SETTINGS.values()}}
OF_SERVER["config"] = OF_SERVER["serve"]
"""Options that have a page of their own, by the command that takes them."""


class Explained(NamedTuple):
    """An option as its row has it."""

    spelling: str
    meaning: str
    default: str


def pages() -> Iterator[tuple[str, str]]:
    root = click.Context(forq, info_name="forq", **forq.context_settings)
    topics = topics_of()
    yield "cli.md", page("Commands", SOURCE, *_overview(root, topics))
    for topic, names in topics.items():
        sections = [block for name in names for block in _sections(_child(root, name), 2)]
        yield f"cli-{topic}.md", page(TITLES[topic], SOURCE, *sections)


def topics_of() -> dict[str, list[str]]:
    """The commands of each page, in the order of the help."""
    topics: dict[str, list[str]] = {page: [] for page in PAGES.values()}
    for heading, group in COMMAND_GROUPS.items():
        topics[PAGES[heading]] += group
    return topics


def _overview(root: click.Context, topics: dict[str, list[str]]) -> Iterator[str]:
    yield f"```\nforq {' '.join(forq.collect_usage_pieces(root))}\n```"
    yield "[The guide](../cli.md) has examples. `forq COMMAND --help` prints the short form of what is here."
    for topic, names in topics.items():
        yield f"## {TITLES[topic]}"
        rows = []
        for name in names:
            link = f"[`forq {name}`](cli-{topic}.md#forq-{name})"
            rows.append([link, with_code(_child(root, name).command.short_help or "")])
        yield table(["Command", "What it does"], rows)
    yield "## Exit codes"
    yield table(["Code", "Meaning"], [[code(str(int(each))), each.doc] for each in Exit])


def _child(context: click.Context, name: str) -> click.Context:
    group = context.command
    assert isinstance(group, click.Group)
    command = group.get_command(context, name)
    assert command is not None
    return click.Context(command, info_name=name, parent=context)


def _sections(context: click.Context, level: int) -> Iterator[str]:
    command = context.command
    yield f"{'#' * level} {context.command_path}"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```\n{usage}\n```"
    shown, _, more = inspect.cleandoc(command.help or "").partition("\f")
    yield from _paragraphs(shown)
    yield from _paragraphs(more)
    rows = [explained(each, context) for each in command.params if isinstance(each, click.Option)]
    found = [[code(each.spelling), each.meaning, each.default] for each in rows if each is not None]
    if found:
        yield table(["Option", "Meaning", "Without it"], found)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from _sections(_child(context, name), level + 1)


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph:
            yield with_links(with_code(" ".join(paragraph.split())))


_NEXT = re.compile("; (?=default: )")


def explained(option: click.Option, context: click.Context) -> Explained | None:
    """What the help says of an option; None for one that has another page."""
    elsewhere = OF_SERVER.get(context.info_name or "", set())
    record = None if elsewhere & set(option.opts) else option.get_help_record(context)
    if record is None:
        return None
    meaning, _, added = (option.help or "").partition("  [")  # what click cannot know, in its form
    said = dict(each.partition(": ")[::2] for each in _NEXT.split(added.removesuffix("]")))
    extra = option.get_help_extra(context)
    default = extra.get("required") or extra.get("default") or said.get("default", "")
    variables = [*([said["env var"]] if "env var" in said else ()), *extra.get("envvars", ())]
    parts = [meaning]
    if added == "default]":
        parts.append("(default)")
    if variables:
        parts.append(f"Environment variable: {', '.join(variables)}.")
    if "range" in extra:
        parts.append(f"Allowed: {_range(extra['range'])}.")
    return Explained(record[0], with_code(" ".join(parts)), with_code(default))


def _range(text: str) -> str:
    return code(re.sub(r"([<>]=?)", r" \1 ", text))
