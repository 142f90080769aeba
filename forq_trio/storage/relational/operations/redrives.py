"""Tasks over dead letters: few, all in the cache; a step of one is stored with the messages that it moved."""

import msgspec

from forq_trio.model.commands import ForgetRedrive, SaveRedrive
from forq_trio.model.errors import ServiceError
from forq_trio.model.redrives import RedriveStep, RedriveTask
from forq_trio.storage.relational.operations.table import operation_on_each
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import after_step, redrive_to_forget

read_task = msgspec.json.Decoder(RedriveTask).decode
_encode = msgspec.json.Encoder().encode


@operation_on_each(SaveRedrive)
def save(tx: Transaction, command: SaveRedrive) -> ServiceError | None:
    task = command.task
    if task.id not in tx.redrives:
        forgotten = redrive_to_forget(tx.redrives.values(), task.started_by)
        if isinstance(forgotten, ServiceError):
            return forgotten
        if forgotten is not None:
            _forget(tx, forgotten)
    _store(tx, task)
    return None


@operation_on_each(ForgetRedrive)
def forget(tx: Transaction, command: ForgetRedrive) -> bool:
    known = command.task_id in tx.redrives
    if known:
        _forget(tx, command.task_id)
    return known


def take_step(tx: Transaction, step: RedriveStep | None, moved: int) -> None:
    """Store how far a task is, now that it moved or deleted so many messages."""
    task = None if step is None else tx.redrives.get(step.task_id)
    if step is not None and task is not None:
        _store(tx, after_step(task, step, moved))


def _store(tx: Transaction, task: RedriveTask) -> None:
    tx.query("save_redrive", task.id, _encode(task).decode())
    tx.redrives[task.id] = task


def _forget(tx: Transaction, task_id: str) -> None:
    tx.query("forget_redrive", task_id)
    del tx.redrives[task_id]
