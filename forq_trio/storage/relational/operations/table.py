"""The operations of engines, by command: beside each function stands which command it carries out."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from forq_trio.model.commands import Command
from forq_trio.storage.engine import DEFERRED
from forq_trio.storage.relational.rehearsal import each_rehearsed
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


def carry_out_each(
    tx: Transaction,
    commands: Sequence[Any],
    carry_out: Callable[[Transaction, Any], Any],
    changes: Callable[[Transaction, Any], Iterable[Hashable]] | None,
) -> list[Any]:
    """Carry out these commands one by one, as far as they may wait. changes: see `operation_on_each`."""
    first = commands[0]

    def carry_out_one(command: Any) -> Any:
        if tx.waited_out and command is not first:
            return DEFERRED
        return carry_out(tx, command)

    if changes is None:
        return [carry_out_one(command) for command in commands]
    return each_rehearsed(tx, commands, carry_out_one, lambda command: changes(tx, command))


def operation_on_each(
    kind: type[Command[Any]],
    table: Operations = OPERATIONS,
    *,
    changes: Callable[[Transaction, Any], Iterable[Hashable]] | None = None,
) -> Callable[[OperationT], OperationT]:
    """Says of a function that it carries out one command of this kind; a batch runs them one by one.

    changes: names of what a command changes, where it reads; commands without one in common wait together
    (rehearsal.py). None for those that read nothing, or are few in a batch. Where they have waited too often all the
    same, the next batch does the others.
    """

    def note(carry_out: OperationT) -> OperationT:
        table[kind] = lambda tx, commands: carry_out_each(tx, commands, carry_out, changes)
        return carry_out

    return note
