"""Exit codes, and which error leads to which.

The error classes are imported only when there is an error, so that `forq --help` does not wait for them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Self

import click

if TYPE_CHECKING:
    from forq_trio.model.errors import ForqError


class Exit(IntEnum):
    """The exit codes, stable for scripts, each with its meaning."""

    doc: str

    def __new__(cls, value: int, doc: str) -> Self:
        member = int.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        return member

    OK = 0, "Done."
    FAILED = (
        1,
        "The operation failed, or not all of it was done: the server refused, a file is not sound, a line was not"
        " sent.",
    )
    USAGE = (
        2,
        "The command line or the configuration is not right, or `serve`, `migrate` and `move` cannot use the database;"
        " nothing was tried.",
    )
    UNREACHABLE = 3, "The server cannot be reached or did not answer."
    NOT_AUTHORISED = (
        4,
        "The server does not accept the secret, the token does not allow it, or this address is locked out for trying"
        " wrong ones.",
    )
    NOTHING = 5, "Nothing was received or found, or a receipt is no longer current."
    GAVE_UP = (
        70,
        "Only `forq serve` and `forq demo`: told to stop, it could not come to an end in time and gave up.",
    )
    INTERRUPTED = (
        130,
        "Ended with Ctrl-C. Once they listen, `forq serve` and `forq demo` take that as their signal to stop, and end"
        " with 0.",
    )


_SECRET_ADVICE = "FORQ_AUTH_SECRET has to hold the server's secret or an access token"


class CliFailure(Exception):
    """Ends a command with one sentence on stderr and an exit code."""

    def __init__(self, sentence: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(sentence)
        self.code = code


def explain(problem: Exception) -> tuple[list[str], int]:
    """The lines for stderr and the exit code of an error that ended a command. Unexpected errors are raised again."""
    from forq_trio.client.address import DEFAULT_URL
    from forq_trio.config.errors import ConfigError
    from forq_trio.model import errors

    match problem:
        case click.exceptions.NoArgsIsHelpError():
            return [problem.format_message()], Exit.USAGE
        case click.UsageError(ctx=context):
            help_line = [f"Try '{context.command_path} --help'."] if context is not None else []
            return [f"forq: {problem.format_message()}", *help_line], Exit.USAGE
        case click.ClickException():
            return [f"forq: {problem.format_message()}"], Exit.FAILED
        case click.Abort():
            return [], Exit.INTERRUPTED
        case ConfigError(problems=problems):
            return ["forq: the configuration is not valid:", *(f"  {line}" for line in problems)], Exit.USAGE
        case CliFailure(code=code):
            return [f"forq: {problem}"], code
        case errors.InvalidSecret() | errors.InvalidServerUrl():
            return [f"forq: {problem}"], Exit.USAGE
        case errors.ForqUnreachable():
            words = f"forq: {problem}"
            if f" {DEFAULT_URL} " in words and "FORQ_URL" not in words:  # that of a Worker says it already
                words += "; FORQ_URL or --url names another place"
            return [words], Exit.UNREACHABLE
        case errors.WrongKey():
            return [f"forq: {in_words(problem)}; {_SECRET_ADVICE}"], Exit.NOT_AUTHORISED
        case errors.TooManyWrongKeys() | errors.Forbidden():
            return [f"forq: {in_words(problem)}"], Exit.NOT_AUTHORISED
        case errors.NotFound() if not isinstance(problem, errors.UnknownPath):
            return [f"forq: {in_words(problem)}"], Exit.NOTHING
        case errors.DeadLettersOnly(message=said) if said == errors.DeadLettersOnly().message:
            advice = "those of the queue orders, for example, are in orders-dlq"
            return [f"forq: {in_words(problem)}; {advice}"], Exit.FAILED
        case errors.CallerError() | errors.ServiceError():
            return [f"forq: {in_words(problem)}"], Exit.FAILED
        case errors.ForqError():
            return [f"forq: {problem}"], Exit.FAILED
        case OSError():
            reason = problem.strerror or type(problem).__name__
            # An error of reading names its file; errors of stdin are reported by the command that reads it.
            words = "cannot write the output" if problem.filename is None else problem.filename
            return [f"forq: {words}: {reason}"], Exit.FAILED
        case UnicodeEncodeError(encoding=encoding):
            return [
                f"forq: the output has characters that {encoding} lacks; PYTHONUTF8=1 makes it UTF-8"
            ], Exit.FAILED
    raise problem


def in_words(problem: "ForqError") -> str:
    """The error in words, with its code and the part of the request to blame, both by the names of the API."""
    blamed = "" if problem.member is None else f" at {problem.member}"
    return f"{problem.api_message} ({problem.code}{blamed})"


@contextmanager
def reporting_unknown_outcome(what: str) -> Iterator[None]:
    """If the body ends with an error that leaves it unknown whether `what` was stored, say so; raise it again."""
    from forq_trio.cli.output import echo
    from forq_trio.model import errors

    try:
        yield
    except (KeyboardInterrupt, errors.ForqError) as problem:
        if not did_nothing(problem):
            echo(f"forq: whether the {what} is stored is not known", err=True)
        raise


def did_nothing(problem: BaseException) -> bool:
    """Whether a request that ended with this error has certainly changed nothing."""
    from forq_trio.model import errors

    match problem:
        case errors.ForqUnreachable(sent=sent):
            return not sent
        case errors.ForqProtocolError(refused=refused):
            return refused
        case errors.ServiceError(code=code):
            return code.startswith("forq.")
    return isinstance(problem, errors.CallerError)
