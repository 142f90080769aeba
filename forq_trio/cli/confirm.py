"""Asking before something is done that cannot be undone."""

import sys
from collections.abc import Callable

import click

from forq_trio.cli.exits import CliFailure
from forq_trio.cli.output import visible


def confirm(question: Callable[[], str], *, doing: str, otherwise: str = "nothing was removed") -> None:
    """Return if somebody says yes. Raises Failure with `otherwise` for no, and UsageError where nobody can be asked.

    question: is made only where there is a terminal to ask it on. doing: what needs --yes without one.
    """
    if not sys.stdin.isatty():
        raise click.UsageError(f"without a terminal to ask on, {doing} needs --yes")
    if not click.confirm(visible(question()), err=True):
        raise CliFailure(otherwise)


def confirm_deletion(what: Callable[[], str], *, doing: str = "purging") -> None:
    """`confirm`, of what is gone for good then."""
    confirm(lambda: f"Permanently delete {what()}? This cannot be undone.", doing=doing)
