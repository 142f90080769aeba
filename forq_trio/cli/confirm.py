"""Asks before a command does something that cannot be undone."""

import sys
from collections.abc import Callable

import click

from forq_trio.cli.exits import CliFailure
from forq_trio.cli.output import visible


def confirm(question: Callable[[], str], *, doing: str, otherwise: str = "nothing was removed") -> None:
    """Ask, and return if the answer is yes. Raises CliFailure with `otherwise` for no, UsageError without a terminal.

    question: called only if there is a terminal to ask on. doing: names what needs --yes if there is none.
    """
    if not sys.stdin.isatty():
        raise click.UsageError(f"without a terminal to ask on, {doing} needs --yes")
    if not click.confirm(visible(question()), err=True):
        raise CliFailure(otherwise)


def confirm_deletion(what: Callable[[], str], *, doing: str = "purging") -> None:
    """`confirm` before something is deleted for good. what: names it."""
    confirm(lambda: f"Permanently delete {what()}? This cannot be undone.", doing=doing)
