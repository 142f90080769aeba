"""Options and arguments that several commands share."""

import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from forq_trio.client.address import DEFAULT_URL
from forq_trio.client.server_urls import url_of
from forq_trio.model.durations import as_option, parse_duration

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def all_options(*options: Callable[[Any], Any]) -> Callable[[CommandT], CommandT]:
    """Options as one decorator, in this order."""

    def decorate(command: CommandT) -> CommandT:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def duration_ms(text: str) -> int:
    """A duration in milliseconds, from seconds or a number with a unit. For use as an option's type."""
    try:
        return parse_duration(text, bare="s", rounded=True)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a duration such as 30, 1.5s, 500ms, 5m, 2h or 1d"
        ) from None


def duration_text(text: str) -> str:
    """A duration as it was typed, with its unit. For use as an option's type."""
    ms = duration_ms(text)
    try:
        parse_duration(text)
    except ValueError:  # without a unit, which is seconds, or with a fraction of a millisecond
        return as_option(ms)
    return text


def moment_ms(text: str) -> int:
    """Milliseconds since the epoch, from a number of them or from ISO 8601 (local time without an offset)."""
    if re.fullmatch(r"[0-9]{1,16}", text):
        return int(text)
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text!r} is neither ISO 8601 nor milliseconds since the epoch") from None


def pair(text: str) -> tuple[str, str]:
    """A name and a value, cut at the first =. For use as an option's type."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def condition(text: str) -> tuple[str, Any]:
    """An attribute and its condition, in the form of a receive's `where`. For use as an option's type."""
    name, value = pair(text)
    wanted = {"not": value, "orAbsent": name.endswith("?!")} if name.endswith("!") else value
    name = name.removesuffix("!").removesuffix("?") if isinstance(wanted, dict) else name
    if not name:
        raise click.BadParameter(f"{text!r} names no attribute")
    return name, wanted


def _distinct(
    context: click.Context, parameter: click.Parameter, pairs: tuple[tuple[str, Any], ...]
) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise click.BadParameter("two have the same name", context, parameter)
    return names


def pairs(*names: str, help: str) -> Callable[[CommandT], CommandT]:
    """An option that is given once for each pair of a mapping, as NAME=VALUE."""
    return click.option(*names, type=pair, multiple=True, callback=_distinct, metavar="NAME=VALUE", help=help)


def where_option(command: CommandT) -> CommandT:
    """--where, once for each condition."""
    return click.option(
        "--where",
        type=condition,
        multiple=True,
        callback=_distinct,
        metavar="CONDITION",
        help="Only messages whose attribute has this value (NAME=VALUE), has another value (NAME!=VALUE), or has"
        " another value or is missing (NAME?!=VALUE). Given several times, all must hold.",
    )(command)


def duration_option(*names: str, **more: Any) -> Callable[[CommandT], CommandT]:
    """An option that takes a duration, in milliseconds."""
    return click.option(*names, type=duration_ms, metavar="DURATION", **more)


def shown_option(default: int) -> Callable[[CommandT], CommandT]:
    """-n."""
    return click.option(
        "-n",
        "limit",
        type=click.IntRange(1, 100),
        metavar="NUMBER",
        default=default,
        show_default=True,
        help="How many messages to show.",
    )


def yes_option(command: CommandT) -> CommandT:
    """--yes, of commands that ask first."""
    return click.option("--yes", is_flag=True, help="Do not ask.")(command)


def target_file_option(command: CommandT) -> CommandT:
    """--file, of commands that write lines."""
    return click.option(
        "--file",
        type=click.Path(dir_okay=False, writable=True, path_type=Path),
        help="Write to this file, and replace what is in it.  [default: stdout]",
    )(command)


def _server_url(context: click.Context, parameter: click.Parameter, given: str | None) -> str:
    return given or url_of(os.environ)


def url_option(command: CommandT) -> CommandT:
    """--url, or FORQ_URL, or where the settings of this environment say."""
    return click.option(
        "--url",
        envvar="FORQ_URL",
        callback=_server_url,
        help="Where the server is.  [env var: FORQ_URL; default: by FORQ_API_ADDR or FORQ_CONFIG, else"
        f" {DEFAULT_URL}]",
    )(command)


def json_option(command: CommandT) -> CommandT:
    """--json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")(command)


def db_option(command: CommandT) -> CommandT:
    """--db-path or --db; the command itself reads FORQ_DB_PATH and the rest of the configuration."""
    return click.option(
        "--db-path", "--db", "db_path", metavar="FILE", help="The database file.  [env var: FORQ_DB_PATH]"
    )(command)
