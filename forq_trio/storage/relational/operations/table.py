"""The operations of engines, by command: beside each function stands which command it carries out."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from forq_trio.model.commands import Command
from forq_trio.storage.relational.transaction import Transaction

Operation = Callable[[Transaction, Sequence[Any]], Sequence[Any]]
OperationT = TypeVar("OperationT", bound=Callable[[Transaction, Any], Any])

Operations = dict[type[Command[Any]], Operation]
OPERATIONS: Operations = {}
"""Those that all engines share."""


def operation(kind: type[Command[Any]]) -> Callable[[OperationT], OperationT]:
    """Says of a function that it carries out all commands of this kind of a batch, set-wise."""

    def note(carry_out: OperationT) -> OperationT:
        OPERATIONS[kind] = carry_out
        return carry_out

    return note


def operation_on_each(
    kind: type[Command[Any]], table: Operations = OPERATIONS
) -> Callable[[OperationT], OperationT]:
    """Says of a function that it carries out one command of this kind; a batch runs them one by one."""

    def note(carry_out: OperationT) -> OperationT:
        table[kind] = lambda tx, commands: [carry_out(tx, command) for command in commands]
        return carry_out

    return note
