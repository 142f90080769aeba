"""Carries out the due runs of schedules; storage/schedules.py decides what becomes of a run.

- A schedule has at most one run for each nominal time: the run, its message and the next nominal time are one commit,
  and the next nominal time is later than the last one, whatever the clock says.
- A run is due at its nominal time plus its jitter. Due runs are carried out in order of `due_at`, then by name, in
  every batch that may store messages, before its commands, as far as the allowance permits. Each is charged with the
  content of its message. Every second run is taken from the next maker with a due schedule: the access tokens by name,
  then the server's secret.
- A run that is RUN_GRACE_MS late was missed. The setting `missed` says which missed runs are sent: none; only the last
  one, if no later run is due; or all, but no more than the last RUNS_CAUGHT_UP_MAX. The others are recorded as one run
  with their number. Of times that follow clocks those of the last RUNS_COUNTED_MS_MAX are counted, and the reason says
  if there were more. The run that is stored as the next one counts, even if the rules of its zone have changed since.
  While runs are caught up, the record of the runs before them stays the newest one.
- After a refused run the next one comes at its time. A paused schedule has no runs, and earlier ones are not made up
  for when it is resumed. The latest RUNS_KEPT_MAX runs of a schedule are stored. A schedule that cannot be read is
  tried again after SET_ASIDE_RETRY_MS.

There may be many schedules, so only their number and the time of the next run are in memory.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import DeleteSchedule, PauseSchedule, RunSchedule, SaveSchedule
from forq_trio.model.errors import ForqError, ScheduleExists, ScheduleNotFound
from forq_trio.model.messages.types import Produced
from forq_trio.model.schedules.types import NewSchedule, SavedRun, Schedule, is_dropped
from forq_trio.storage.allowance import Allowance, Step
from forq_trio.storage.engine import Deferred
from forq_trio.storage.relational.operations.find_messages import id_in_queue
from forq_trio.storage.relational.operations.send import send
from forq_trio.storage.relational.operations.table import operation_on_each
from forq_trio.storage.relational.own_work import OWN_WORK, OwnWork
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import message_bytes
from forq_trio.storage.schedules import (
    StoredSchedule,
    advance,
    by_hand,
    check_share,
    in_order,
    is_catching_up,
    paused,
    refused,
    saved,
    sent,
    skipped,
    totals_with,
)

_read_definition = msgspec.json.Decoder(NewSchedule).decode
_read_run = msgspec.json.Decoder(SavedRun).decode
_encode = msgspec.json.Encoder().encode


def read_schedule(row: Sequence[Any]) -> StoredSchedule:
    """The schedule of a row with the columns `schedule`."""
    name, definition, *members = row
    return StoredSchedule(name, _read_definition(definition), *members)


def read_runs(rows: Sequence[tuple[str | None]]) -> tuple[SavedRun, ...]:
    """The runs in these rows; a None in place of a run is skipped."""
    return tuple(_read_run(run) for (run,) in rows if run is not None)


def _find(tx: Transaction, name: str) -> tuple[int, StoredSchedule] | None:
    found = tx.query("find_schedule", name)
    return (found[0][0], read_schedule(found[0][1:])) if found else None


def _as_callers_see(tx: Transaction, schedule_id: int, stored: StoredSchedule) -> Schedule:
    runs = read_runs(tx.query("runs_of_schedule", schedule_id, 1))
    return stored.as_callers_see(runs[0] if runs else None)


@operation_on_each(SaveSchedule, changes=lambda _, command: [command.name])
def save(tx: Transaction, command: SaveSchedule) -> Schedule | ForqError:
    found = _find(tx, command.name)
    if found is not None and command.only_new:
        return ScheduleExists()
    refusal = tx.check_takes_messages(*command.new.queues)
    if refusal is None and found is None:
        refusal = check_share(tx.schedules.totals, command.by)
    if refusal is not None:
        return refusal
    after = saved(found and found[1], command, tx.now_ms)
    name, _, *members = msgspec.structs.astuple(after)
    answer = after.as_callers_see(None) if found is None else _as_callers_see(tx, found[0], after)
    tx.query("save_schedule", name, _encode(after.new).decode(), *members)
    if found is None:
        tx.schedules.totals = totals_with(tx.schedules.totals, command.by, 1)
    tx.schedules.changed = True
    return answer


@operation_on_each(PauseSchedule, changes=lambda _, command: [command.name])
def pause(tx: Transaction, command: PauseSchedule) -> Schedule | ForqError:
    found = _find(tx, command.name)
    if found is None:
        return ScheduleNotFound()
    schedule_id, before = found
    after = paused(before, command.by, tx.now_ms, pause=command.paused)
    answer = _as_callers_see(tx, schedule_id, after)
    _change(tx, schedule_id, after)
    return answer


@operation_on_each(DeleteSchedule, changes=lambda _, command: [command.name])
def delete(tx: Transaction, command: DeleteSchedule) -> bool:
    found = _find(tx, command.name)
    if found is None:
        return False
    schedule_id, stored = found
    tx.query("forget_runs", schedule_id, stored.runs)
    tx.query("delete_schedule", schedule_id)
    tx.schedules.totals = totals_with(tx.schedules.totals, stored.made_by, -1)
    tx.schedules.changed = True
    return True


@operation_on_each(RunSchedule, changes=lambda _, command: [command.name])
def run_by_hand(tx: Transaction, command: RunSchedule) -> Produced | ForqError | Deferred:
    found = _find(tx, command.name)
    if found is None:
        return ScheduleNotFound()
    schedule_id, stored = found
    produced = _send(tx, stored)
    if not isinstance(produced, Produced):
        return produced
    after = replace(stored, last_sequence=produced.sequence)
    _note(tx, schedule_id, stored, after, (by_hand(tx.now_ms, produced),))
    return produced


def run_due(tx: Transaction) -> None:
    """Carry out the runs that are due, as far as the allowance permits; makers take turns at every second run.

    In an isolated batch a schedule that cannot be read or run is tried again later, and the others run.
    """
    allowance = tx.allowances.of(Step.RUNS)
    tx.schedules.changed = True
    tx.begin_step()
    in_turn, waits = False, False
    while not (allowance.used_up or waits or tx.waited_out):
        found = (in_turn and _due_in_turn(tx)) or tx.query("due_schedule", tx.now_ms)
        if not found:
            tx.schedules.last_maker = ""
            return
        in_turn = not in_turn
        schedule_id, name = found[0]
        if not tx.isolated:
            waits = not _run(tx, schedule_id, allowance)
            continue
        did: list[bool] = []
        error = tx.attempt(lambda did=did, key=schedule_id: did.append(_run(tx, key, allowance)))  # type: ignore[misc]
        if error is None:
            waits = not did[0]
        else:
            tx.query("retry_schedule", tx.now_ms + limits.SET_ASIDE_RETRY_MS, schedule_id)
            tx.set_aside.note(f"schedule {name}", error)
            allowance.charge(1, 0)


def _due_in_turn(tx: Transaction) -> list[Any]:
    """The schedule of the next maker that has been due for longest; after the last token it is the secret's turn."""
    found = tx.query("next_maker", tx.schedules.last_maker)
    tx.schedules.last_maker = found[0][0] if found else ""
    return tx.query("due_schedule_of", tx.schedules.last_maker or None, tx.now_ms)


def _run(tx: Transaction, schedule_id: int, allowance: Allowance) -> bool:
    """Carry out the next step of a due schedule; False if it has to wait for the next batch."""
    stored = read_schedule(tx.query("read_schedule", schedule_id)[0])
    step = advance(stored, tx.now_ms)
    after, result = step.after, None
    if step.nominal is not None:
        at = step.nominal, tx.now_ms, step.late_ms
        pending = _pending(tx, stored)
        if pending is not None:
            result = skipped(*at, pending, stored.last_sequence)
        else:
            outcome = _send(tx, stored)
            if isinstance(outcome, Deferred):
                return False
            if isinstance(outcome, Produced):
                after = replace(after, last_sequence=outcome.sequence)
                result = sent(*at, outcome)
            else:
                result = refused(*at, outcome)
    results = in_order(step, result)
    _note(tx, schedule_id, stored, after, results)
    tx.schedules.runs += results
    allowance.charge(step.cost, message_bytes(stored.new.content, stored.new.attributes))
    return True


def _pending(tx: Transaction, stored: StoredSchedule) -> str | None:
    """The id of the schedule's last message if it is still in the queue and the run is therefore skipped."""
    if stored.new.while_pending == "send" or stored.last_sequence is None:
        return None
    return id_in_queue(tx, stored.new.queue, stored.last_sequence)


def _send(tx: Transaction, stored: StoredSchedule) -> Produced | ForqError | Deferred:
    """Send the message of a schedule. New queues count for the token that made the schedule."""
    new = stored.new
    if (refusal := tx.check_takes_messages(*new.queues)) is not None:
        return refusal
    for queue in new.queues:
        if (refusal := tx.name(queue, stored.made_by or "")) is not None:
            return refusal
    outcome = send(tx, new.queue, (new.message,))
    tx.write_inserts()
    return outcome[0] if isinstance(outcome, list) else outcome


def _note(
    tx: Transaction,
    schedule_id: int,
    before: StoredSchedule,
    after: StoredSchedule,
    results: tuple[SavedRun, ...],
) -> None:
    """Store a schedule and the results of its runs; the oldest results are deleted."""
    runs = after.runs
    if is_catching_up(before):
        dropped = [run for run in read_runs(tx.query("runs_of_schedule", schedule_id, 1)) if is_dropped(run)]
        results, runs = (*results, *dropped), runs - len(dropped)
    numbered = list(enumerate(results, runs + 1))
    tx.run("add_run", [(schedule_id, number, _encode(run).decode()) for number, run in numbered])
    runs += len(results)
    if runs > limits.RUNS_KEPT_MAX:
        tx.query("forget_runs", schedule_id, runs - limits.RUNS_KEPT_MAX)
    _change(tx, schedule_id, replace(after, runs=runs))


def _change(tx: Transaction, schedule_id: int, after: StoredSchedule) -> None:
    tx.query(
        "change_schedule",
        after.paused_at,
        after.paused_by,
        after.next_run,
        after.due_at,
        after.last_nominal,
        after.catching_up,
        after.last_sequence,
        after.runs,
        schedule_id,
    )
    tx.schedules.changed = True


def _due_at(tx: Transaction) -> int | None:
    """When the next run is due; read again if it may have changed."""
    if tx.schedules.changed:
        found = tx.query("next_schedule")
        tx.schedules.totals = replace(tx.schedules.totals, due_at=found[0][0] if found else None)
    return tx.schedules.totals.due_at


OWN_WORK.append(OwnWork(_due_at, run_due, lambda tx: tx.schedules.runs))
