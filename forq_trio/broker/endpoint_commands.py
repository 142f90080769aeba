"""The commands of endpoints that are one command, made of the arguments of a call."""

from collections.abc import Callable, Mapping
from typing import Any

from forq_trio.model import limits
from forq_trio.model.checks import check_text
from forq_trio.model.commands import COMMANDS, Command
from forq_trio.model.endpoint import CommandEndpoint
from forq_trio.model.messages.types import check_message_id, check_queue_name


def _checked_reason(reason: str) -> str:
    check_text("reason", reason, 0, limits.REASON_LENGTH_MAX)
    return reason


CHECKS: Mapping[str, Callable[[Any], object]] = {
    "queue": check_queue_name,
    "message_id": check_message_id,
    "reason": _checked_reason,
}
"""What checks an argument, by its name; returns it as a command has it, or raises the error for it."""

_KINDS: Mapping[str, Callable[..., Command[Any]]] = {kind.__name__: kind for kind in COMMANDS}


def command_of(endpoint: CommandEndpoint[Any], arguments: Mapping[str, object]) -> Command[Any]:
    """The command of an endpoint. Raises the errors of the checks, the first one of the first argument."""
    return _KINDS[endpoint.command](**{name: CHECKS[name](value) for name, value in arguments.items()})
