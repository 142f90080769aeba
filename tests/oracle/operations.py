"""The operations of the oracle, by command: beside each function stands which command it carries out."""

from collections.abc import Callable
from typing import Any, TypeVar

from forq_trio.model.commands import Command
from oracle.transaction import Transaction

Operation = Callable[[Transaction, Any], Any]
OperationT = TypeVar("OperationT", bound=Operation)

OPERATIONS: dict[type[Command[Any]], Operation] = {}


def operation(kind: type[Command[Any]]) -> Callable[[OperationT], OperationT]:
    """Says of a function that it carries out the commands of this kind."""

    def note(carry_out: OperationT) -> OperationT:
        OPERATIONS[kind] = carry_out
        return carry_out

    return note
