"""Redrive tasks: few enough to be all in memory. A step of a task is stored along with the messages that it moved."""

import msgspec

from forq_trio.model.commands import ChangeRedrive, ForgetRedrive, SaveRedrive
from forq_trio.model.dead_letters.redrives import RedriveStep, RedriveTask, after_step
from forq_trio.model.errors import ForqError, ServiceError
from forq_trio.storage.relational.operations.table import operation_on_each
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import after_change, redrive_to_forget, step_refused

_encode = msgspec.json.Encoder().encode


@operation_on_each(SaveRedrive)
def save(tx: Transaction, command: SaveRedrive) -> ForqError | None:
    task = command.task
    if (refusal := tx.check_takes_messages(task.target)) is not None:
        return refusal
    if task.id not in tx.redrives:
        forgotten = redrive_to_forget(tx.redrives.values(), task.started_by)
        if isinstance(forgotten, ServiceError):
            return forgotten
        if forgotten is not None:
            _forget(tx, forgotten)
    _store(tx, task)
    return None


@operation_on_each(ChangeRedrive)
def change(tx: Transaction, command: ChangeRedrive) -> RedriveTask | None:
    task = tx.redrives.get(command.task_id)
    if task is None:
        return None
    changed = after_change(task, command, tx.now_ms)
    if changed != task:
        _store(tx, changed)
    return changed


@operation_on_each(ForgetRedrive)
def forget(tx: Transaction, command: ForgetRedrive) -> bool:
    known = command.task_id in tx.redrives
    if known:
        _forget(tx, command.task_id)
    return known


def refused(tx: Transaction, step: RedriveStep | None) -> ForqError | None:
    """Why the command of this step must not change anything; to be called before it does."""
    return None if step is None else step_refused(tx.redrives.get(step.task_id), step)


def take_step(tx: Transaction, step: RedriveStep | None, moved: int) -> None:
    """Store the progress of a task after a step that moved or deleted `moved` messages."""
    if step is not None:
        _store(tx, after_step(tx.redrives[step.task_id], step, moved, tx.now_ms))


def _store(tx: Transaction, task: RedriveTask) -> None:
    tx.query("save_redrive", task.id, _encode(task).decode())
    tx.redrives[task.id] = task


def _forget(tx: Transaction, task_id: str) -> None:
    tx.query("forget_redrive", task_id)
    del tx.redrives[task_id]
