"""All commands. Each has a module of its own, imported only when it is called.

Commands return an exit code (None: OK) and raise errors of our own trees; `run` turns those into one sentence on
stderr and the exit code of docs/cli.md. An expected error never shows a traceback.
"""

import importlib
from collections.abc import Sequence
from contextlib import suppress

import click

from forq_trio.cli.exits import Exit, explain
from forq_trio.cli.groups import CommandGroup

_MODULES = {
    "serve": "serve",
    "config": "serve",
    "send": "send",
    "receive": "receive",
    "ack": "settle",
    "nack": "settle",
    "extend": "settle",
    "release": "settle",
    "cancel": "cancel",
    "queues": "look",
    "peek": "look",
    "export": "export",
    "events": "events",
    "queue": "queue",
    "dead": "dead",
    "consumers": "consumers",
    "apps": "apps",
    "history": "history",
    "token": "token",
    "pipeline": "pipeline",
    "check": "files",
    "verify": "files",
    "backup": "files",
    "restore": "files",
    "compact": "compact",
    "completion": "completion",
}


class _Commands(CommandGroup):
    """Imports the module of a command when it is called, so that no command waits for another's imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        module = importlib.import_module(f"forq_trio.cli.{_MODULES[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        return command


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from forq_trio.model.version import installed_version

        click.echo(f"forq-trio {installed_version() or '(not installed)'}")
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
        lines, code = explain(problem)
        with suppress(OSError):
            for line in lines:
                click.echo(line, err=True)
        return code
    return int(outcome) if outcome is not None else Exit.OK
