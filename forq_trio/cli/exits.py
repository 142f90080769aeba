"""Exit codes, and which error leads to which."""

from enum import IntEnum

import click

from forq_trio.model.errors import (
    CallerError,
    Forbidden,
    ForqError,
    ForqUnreachable,
    NotFound,
    ServiceError,
    TooManyWrongKeys,
    WrongKey,
)


class Exit(IntEnum):
    """The exit codes, stable for scripts; docs/cli.md says what they mean."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_AUTHORISED = 4
    NOTHING = 5
    INTERRUPTED = 130


class Failure(Exception):
    """Ends a command with one sentence on stderr and an exit code."""

    def __init__(self, sentence: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(sentence)
        self.code = code


def explain(problem: Exception) -> tuple[list[str], int]:
    """The lines for stderr and the exit code of an error that ended a command. Unexpected errors are raised again."""
    from forq_trio.config.errors import ConfigError

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
        case Failure(code=code):
            return [f"forq: {problem}"], code
        case ForqUnreachable():
            return [f"forq: {problem}"], Exit.UNREACHABLE
        case WrongKey() | TooManyWrongKeys() | Forbidden():
            return [f"forq: {problem} ({problem.code})"], Exit.NOT_AUTHORISED
        case NotFound():
            return [f"forq: {problem} ({problem.code})"], Exit.NOTHING
        case CallerError() | ServiceError():
            return [f"forq: {problem} ({problem.code})"], Exit.FAILED
        case ForqError():
            return [f"forq: {problem}"], Exit.FAILED
        case OSError():
            file = f": {problem.filename}" if problem.filename is not None else ""
            return [f"forq: {problem.strerror or type(problem).__name__}{file}"], Exit.FAILED
    raise problem
