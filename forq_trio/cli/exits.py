"""Exit codes, and which error leads to which."""

from enum import IntEnum

import click

from forq_trio.model.errors import ForqError


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
    from forq_trio.client.errors import ForqApiError, ForqClientError, ForqUnreachable
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
        case ForqApiError(status=status):
            codes = {401: Exit.NOT_AUTHORISED, 403: Exit.NOT_AUTHORISED, 429: Exit.NOT_AUTHORISED}
            return [f"forq: {problem}"], Exit.NOTHING if status == 404 else codes.get(status, Exit.FAILED)
        case ForqUnreachable():
            return [f"forq: {problem}"], Exit.UNREACHABLE
        case ForqClientError() | ForqError():
            return [f"forq: {problem}"], Exit.FAILED
        case OSError():
            file = f": {problem.filename}" if problem.filename is not None else ""
            return [f"forq: {problem.strerror or type(problem).__name__}{file}"], Exit.FAILED
    raise problem
