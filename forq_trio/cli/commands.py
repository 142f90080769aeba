"""All commands. Each has a module of its own, imported only when it is called, or is a row in `by_id`.

Commands return an exit code (None: OK) and raise errors of our own trees; `run` turns those into one sentence on
stderr and the exit code of docs/reference/cli.md. An expected error never shows a traceback.
"""

import importlib
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import click

from forq_trio.cli.by_id import BY_ID, command_by_id
from forq_trio.cli.exits import Exit, explain
from forq_trio.cli.groups import CommandGroup


class _Listed(NamedTuple):
    """The module of a command, and its line in the list of commands, so that the list imports no module."""

    module: str
    says: str


COMMAND_GROUPS = {
    "Run": {
        "demo": _Listed("demo", "Run a server with a small shop behind it, to look at."),
        "init": _Listed("init", "Write a secret, a data folder and a TOML file for a server."),
        "serve": _Listed("serve", "Run the server."),
        "config": _Listed("serve", "Print the settings in effect, or an example file."),
        "work": _Listed("work", "Run a command or a Worker on messages, or post them to a URL."),
        "workers": _Listed("workers", "List workers: their slots, and what they handle."),
        "processes": _Listed("processes", "List the servers that share a database."),
        "health": _Listed("health", "Ask a running server whether it works."),
    },
    "Messages": {
        "send": _Listed("send", "Send a message, or each line of a file or pipe."),
        "receive": _Listed("receive", "Receive messages, once or as they come."),
        "peek": _Listed("look", "Show the next messages without receiving them."),
        "ack": _Listed("settle", "Acknowledge received messages."),
        "nack": _Listed("settle", "Give messages back after a failed attempt."),
        "extend": _Listed("settle", "Extend the leases of received messages."),
        "release": _Listed("settle", "Give messages back unprocessed."),
        **{name: _Listed("by_id", row.says) for name, row in BY_ID.items()},
        "result": _Listed("result", "Print the result of a message, waiting for its end."),
        "key": _Listed("key", "List, show, reschedule or drop messages by key."),
        "export": _Listed("export", "Write the messages of a queue as lines of JSON."),
    },
    "Queues": {
        "queues": _Listed("look", "List all queues."),
        "queue": _Listed("queue", "Set up, pause, empty or remove a queue."),
        "batch": _Listed("message_batches", "List, show, close or abandon batches of messages."),
        "schedule": _Listed("schedule", "Save, show, pause or run schedules, which send messages."),
    },
    "Dead letters and history": {
        "dead": _Listed("dead", "Find, redrive, edit or delete dead letters."),
        "history": _Listed("history", "Find, show, export or purge finished messages."),
        "events": _Listed("events", "Show what happened to messages."),
    },
    "Access": {"token": _Listed("token", "Make, list or revoke access tokens.")},
    "Databases": {
        "check": _Listed("files", "Check a database file."),
        "verify": _Listed("files", "Check a backup."),
        "backup": _Listed("files", "Copy a database, also one in use."),
        "restore": _Listed("files", "Replace a database with a backup."),
        "compact": _Listed("compact", "Give free space of a database back to the disk."),
        "migrate": _Listed("database", "Bring the schema of a database up to date."),
        "move": _Listed("database", "Move a file into PostgreSQL, or back."),
    },
    "Pipelines and outboxes": {
        "pipeline": _Listed("pipeline", "Archive, report, replay and load with Spark."),
        "consumers": _Listed("consumers", "List, release or delete consumers of pipelines."),
        "apps": _Listed("apps", "List or delete apps that published."),
        "relay": _Listed("outbox_relay", "Send what an application wrote into its outbox."),
        "outbox": _Listed("outbox", "List, retry or delete what an outbox has set aside."),
        "pgq": _Listed("pgq", "Make, drop or check tables of pgq's layout in PostgreSQL."),
    },
    "Shell": {"completion": _Listed("completion", "Print the completion script of a shell.")},
}
"""The headings of the list of commands, and the commands below each: a new command is one line here."""

_COMMANDS = {name: listed for group in COMMAND_GROUPS.values() for name, listed in group.items()}

_VARIABLES = (
    (
        "FORQ_URL",
        "Where the server is. Without it, or --url: where FORQ_API_ADDR says, or the file that FORQ_CONFIG names,"
        " else http://localhost:8080.",
    ),
    ("FORQ_AUTH_SECRET", "The server's secret, of at least 32 characters, or a token of `forq token`."),
)
_EXAMPLE = (
    'export FORQ_AUTH_SECRET="$(openssl rand -hex 32)"',
    "forq serve &",
    "forq send emails hello",
    "forq receive emails --ack",
)


class _Commands(CommandGroup):
    """Imports the module of a command when that is called, so that no command waits for the imports of others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in BY_ID:
            return command_by_id(cmd_name)
        listed = _COMMANDS.get(cmd_name)
        if listed is None:
            return None
        module = importlib.import_module(f"forq_trio.cli.{listed.module}")
        command: click.Command = getattr(module, cmd_name)
        command.short_help = listed.says
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _COMMANDS))  # one for all groups, so that their lines are below each other
        for heading, group in COMMAND_GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), listed.says) for name, listed in group.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Variables of all commands that talk to a server"):
            formatter.write_dl(_VARIABLES)
        with formatter.section("To begin with"):
            for line in _EXAMPLE:
                formatter.write(f"  {line}\n")


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from forq_trio.cli.output import echo
        from forq_trio.model.version import version_line

        echo(version_line())
        context.exit()


@click.command(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Print the version and exit.",
)
def forq() -> None:
    """A durable, instant message queue: the server, and commands for it."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (None: the process's own) and return the exit code."""
    try:
        outcome = forq.main(args=arguments, prog_name="forq", standalone_mode=False)
    except Exception as problem:
        from forq_trio.cli.output import echo

        lines, code = explain(problem)
        with suppress(OSError):
            for line in lines:
                echo(line, err=True)
        return code
    return int(outcome) if outcome is not None else Exit.OK
