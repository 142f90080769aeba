"""The table of the oracle's operations by command; a decorator on the functions fills it."""

from collections.abc import Callable
from typing import Any, TypeVar

from forq_trio.model.commands import Command
from oracle.transaction import Transaction

Operation = Callable[[Transaction, Any], Any]
OperationT = TypeVar("OperationT", bound=Operation)

OPERATIONS: dict[type[Command[Any]], Operation] = {}


def operation(kind: type[Command[Any]]) -> Callable[[OperationT], OperationT]:
    """Decorates a function that carries out the commands of this kind."""

    def note(carry_out: OperationT) -> OperationT:
        OPERATIONS[kind] = carry_out
        return carry_out

    return note
