"""The reference engine: schedules and their runs."""

from collections.abc import Iterable

from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import DeleteSchedule, PauseSchedule, RunSchedule, SaveSchedule
from forq_trio.model.errors import ForqError, ScheduleExists, ScheduleNotFound
from forq_trio.model.messages.types import Produced
from forq_trio.model.schedules.types import SavedRun, Schedule, is_dropped
from forq_trio.storage.bound_tables import check_all_unbound
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
)
from oracle.operations import operation
from oracle.send import send
from oracle.state import State, schedule_totals
from oracle.transaction import Transaction


def told(state: State, stored: StoredSchedule) -> Schedule:
    runs = state.schedule_runs.get(stored.name, ())
    return stored.as_callers_see(runs[-1] if runs else None)


def _find(tx: Transaction, name: str) -> StoredSchedule:
    if name not in tx.state.schedules:
        raise ScheduleNotFound
    return tx.state.schedules[name]


@operation(SaveSchedule)
def save(tx: Transaction, command: SaveSchedule) -> Schedule:
    before = tx.state.schedules.get(command.name)
    if before is not None and command.only_new:
        raise ScheduleExists
    bound = check_all_unbound(command.new.queues, tx.state.settings.get)
    if bound is not None:
        raise bound
    if (
        before is None
        and (refusal := check_share(schedule_totals(tx.state.schedules.values()), command.by)) is not None
    ):
        raise refusal
    after = saved(before, command, tx.now_ms)
    tx.state.schedules[command.name] = after
    return told(tx.state, after)


@operation(PauseSchedule)
def pause(tx: Transaction, command: PauseSchedule) -> Schedule:
    after = paused(_find(tx, command.name), command.by, tx.now_ms, pause=command.paused)
    tx.state.schedules[command.name] = after
    return told(tx.state, after)


@operation(DeleteSchedule)
def delete(tx: Transaction, command: DeleteSchedule) -> bool:
    tx.state.schedule_runs.pop(command.name, None)
    return tx.state.schedules.pop(command.name, None) is not None


@operation(RunSchedule)
def run_by_hand(tx: Transaction, command: RunSchedule) -> Produced | ForqError:
    stored = _find(tx, command.name)
    produced = _send(tx, stored)
    if isinstance(produced, Produced):
        after = replace(stored, last_sequence=produced.sequence)
        _note(tx, stored, after, (by_hand(tx.now_ms, produced),))
    return produced


def run_due(tx: Transaction) -> None:
    """Carry out the runs that are due. At every second one it is the next maker's turn."""
    in_turn, maker = False, ""
    while stored := _due_for_longest(tx.state.schedules.values(), tx.now_ms):
        if in_turn:
            maker = _next_maker(tx, maker)
            stored = _due_for_longest(_of_maker(tx, maker), tx.now_ms) or stored
        in_turn = not in_turn
        step = advance(stored, tx.now_ms)
        after, result = step.after, None
        if step.nominal is not None:
            at = step.nominal, tx.now_ms, step.late_ms
            pending = _pending(tx, stored)
            outcome = None if pending is not None else _send(tx, stored)
            if pending is not None:
                result = skipped(*at, pending, stored.last_sequence)
            elif isinstance(outcome, Produced):
                after = replace(after, last_sequence=outcome.sequence)
                result = sent(*at, outcome)
            else:
                assert outcome is not None
                result = refused(*at, outcome)
        results = in_order(step, result)
        _note(tx, stored, after, results)
        tx.runs += results


def _due_for_longest(schedules: Iterable[StoredSchedule], now_ms: int) -> StoredSchedule | None:
    due = [each for each in schedules if each.due_at is not None and each.due_at <= now_ms]
    return min(due, key=lambda each: (each.due_at, each.name), default=None)


def _next_maker(tx: Transaction, maker: str) -> str:
    """The maker that comes after this one by name; the server's secret, "", comes after the last token."""
    makers = [each.made_by or "" for each in tx.state.schedules.values()]
    return min([each for each in makers if each > maker], default="")


def _of_maker(tx: Transaction, maker: str) -> list[StoredSchedule]:
    return [each for each in tx.state.schedules.values() if (each.made_by or "") == maker]


def _pending(tx: Transaction, stored: StoredSchedule) -> str | None:
    """The id of the schedule's last message if it is still in the queue and the run is therefore skipped."""
    row = tx.state.rows.get(stored.last_sequence or 0)
    skips = stored.new.while_pending == "skip"
    return row.id if skips and row is not None and row.queue == stored.new.queue else None


def _send(tx: Transaction, stored: StoredSchedule) -> Produced | ForqError:
    if (bound := check_all_unbound(stored.new.queues, tx.state.settings.get)) is not None:
        return bound
    for queue in stored.new.queues:
        if queue and (refusal := tx.name(queue, stored.made_by or "")) is not None:
            return refusal
    outcome = send(tx, stored.new.queue, (stored.new.message,), tx.state.last_seq)
    return outcome[0] if isinstance(outcome, tuple) else outcome


def _note(
    tx: Transaction, before: StoredSchedule, after: StoredSchedule, results: tuple[SavedRun, ...]
) -> None:
    earlier = tx.state.schedule_runs.get(after.name, ())
    runs = after.runs + len(results)
    if is_catching_up(before) and earlier and is_dropped(earlier[-1]):
        earlier, results = earlier[:-1], (*results, earlier[-1])
    tx.state.schedule_runs[after.name] = (*earlier, *results)[-limits.RUNS_KEPT_MAX :]
    tx.state.schedules[after.name] = replace(after, runs=runs)
