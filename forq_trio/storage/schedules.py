"""The decisions about schedules, for all engines: which run is sent, and which runs were missed.

The rules for sending runs are in relational/operations/schedules.py; forq_trio/schedules computes the times.
"""

from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import SaveSchedule
from forq_trio.model.durations import in_words
from forq_trio.model.errors import ForqError, TooManySchedules
from forq_trio.model.messages.types import Produced
from forq_trio.model.schedules.types import (
    COUNTED_IN_PART,
    DROPPED,
    NewSchedule,
    SavedRun,
    Schedule,
    ScheduleTotals,
    Timing,
)
from forq_trio.model.values import seen
from forq_trio.schedules.times import NominalTimes, jitter_of

_CATCH_UP_COST = 5  # to find the first run to catch up takes as long as to send so many, at most
_COUNTED_MS_A_COST = 366 * limits.DAY_MS  # to count the runs of so long takes as long as to send one, at most


class StoredSchedule(Struct, frozen=True, gc=False):
    """A schedule as engines store it.

    made_by, paused_by: the name of an access token; None for the server's secret.
    """

    name: str
    new: NewSchedule  # as it was saved, without `paused`
    made_at: int
    made_by: str | None
    updated_at: int
    paused_at: int | None = None
    paused_by: str | None = None
    next_run: int | None = None
    due_at: int | None = None  # when `next_run` is sent: its time plus the jitter
    last_nominal: int | None = None  # of the last run, so that it does not run again if the clock is set back
    # the missed runs up to this nominal time are all sent, one after the other, without a further decision
    catching_up: int | None = None
    last_sequence: int | None = None  # of the last message
    runs: int = 0  # how many runs were recorded; the next one gets this number plus 1

    def as_callers_see(self, last_run: SavedRun | None) -> Schedule:
        """The schedule as callers see it."""
        new = self.new
        members = {name: getattr(new, name) for name in NewSchedule.__struct_fields__}
        members["paused"] = self.paused_at is not None
        return seen(Schedule, self, **members, last_run=last_run)


class Advance(NamedTuple):
    """What is to be done next for a schedule that is due."""

    missed: SavedRun | None  # the runs that are not sent, recorded as one
    nominal: int | None  # the nominal time of the run to send now, None for none
    late_ms: int  # how late that run is
    after: StoredSchedule  # the schedule afterwards
    cost: int = 1  # what the step's allowance is charged, in runs


@lru_cache(maxsize=limits.RULES_CACHED_MAX)
def _runs(timing: Timing, made_at: int) -> NominalTimes:
    return NominalTimes(timing, made_at)


def runs_of(stored: StoredSchedule) -> NominalTimes:
    """The times of a schedule. Raises InvalidCron or InvalidSchedule if its timing can no longer be read."""
    timing = stored.new.timing
    return _runs(timing, stored.made_at if timing.every is not None else 0)


def saved(before: StoredSchedule | None, command: SaveSchedule, now_ms: int) -> StoredSchedule:
    """The schedule after it is saved. The next run stays the same if the timing does. before: None for a new one."""
    new = command.new
    paused_at, paused_by = (None, None) if before is None else (before.paused_at, before.paused_by)
    if new.paused is False:
        paused_at = paused_by = None
    elif new.paused and paused_at is None:
        paused_at, paused_by = now_ms, command.by
    after = StoredSchedule(
        name=command.name,
        new=replace(new, paused=None),
        made_at=now_ms if before is None else before.made_at,
        made_by=command.by if before is None else before.made_by,
        updated_at=now_ms,
        paused_at=paused_at,
        paused_by=paused_by,
        last_nominal=None if before is None else before.last_nominal,
        last_sequence=None if before is None else before.last_sequence,
        runs=0 if before is None else before.runs,
    )
    if paused_at is not None:
        return after
    if before is not None and before.next_run is not None and before.new.timing == new.timing:
        return replace(after, next_run=before.next_run, due_at=before.due_at, catching_up=before.catching_up)
    return _from_now(after, now_ms)


def paused(before: StoredSchedule, by: str | None, now_ms: int, *, pause: bool) -> StoredSchedule:
    """The schedule after it is paused or resumed; unchanged if it already was."""
    if pause is (before.paused_at is not None):
        return before
    if pause:
        return replace(before, paused_at=now_ms, paused_by=by, next_run=None, due_at=None, catching_up=None)
    return _from_now(replace(before, paused_at=None, paused_by=None), now_ms)


def _from_now(stored: StoredSchedule, now_ms: int) -> StoredSchedule:
    """The schedule with its next run: the first one after now and after the last run."""
    runs = runs_of(stored)
    return _with_next(stored, runs, runs.after(max(now_ms, stored.last_nominal or 0)))


def _with_next(stored: StoredSchedule, runs: NominalTimes, nominal: int | None) -> StoredSchedule:
    due_at = None if nominal is None else _due_at(stored, runs, nominal)
    return replace(stored, next_run=nominal, due_at=due_at)


def _due_at(stored: StoredSchedule, runs: NominalTimes, nominal: int) -> int:
    jitter_ms = stored.new.jitter_ms
    if not jitter_ms:
        return nominal
    after = runs.after(nominal)
    gap_ms = jitter_ms + 1 if after is None else after - nominal
    return nominal + jitter_of(stored.name, nominal, jitter_ms, gap_ms)


def advance(stored: StoredSchedule, now_ms: int) -> Advance:
    """What to do for a schedule whose `due_at` has come: the run to send, and the earlier ones that were missed."""
    nominal, due_at = stored.next_run, stored.due_at
    assert nominal is not None
    assert due_at is not None
    runs = runs_of(stored)
    caught_up = stored.catching_up is not None and nominal <= stored.catching_up
    if caught_up or not _is_late(due_at, now_ms):
        return _run(stored, runs, nominal, due_at, now_ms)
    last = _last_late(stored, runs, nominal, now_ms)
    missed: int | None
    first: int | None
    match stored.new.missed:
        case "skip":
            missed, first = last, None
        case "last":
            following = runs.after(last)
            on_time = following is not None and _due_at(stored, runs, following) <= now_ms
            first = following if on_time else last
            missed = last if on_time else _before(runs, nominal, last)
        case "all":
            stored = replace(stored, catching_up=last)
            first = runs.back(last, limits.RUNS_CAUGHT_UP_MAX, nominal) or nominal
            missed = _before(runs, nominal, first)
    note, cost = None, _CATCH_UP_COST if stored.new.missed == "all" else 1
    if missed is not None:
        count, all_counted = runs.count(nominal, missed)
        count += all_counted  # `nominal` itself
        reason = f"more than {in_words(limits.RUN_GRACE_MS)} late"
        if stored.new.missed == "all":
            of_all = f" of {count + limits.RUNS_CAUGHT_UP_MAX:,}" if all_counted else ""
            reason += f"; {count:,}{of_all} {DROPPED}"
        note = SavedRun(
            nominal=missed,
            result="missed",
            runs=max(1, count),
            at=now_ms,
            late_ms=now_ms - missed,
            reason=reason if all_counted else f"{reason}; {COUNTED_IN_PART}",
        )
        cost += min(missed - nominal, limits.RUNS_COUNTED_MS_MAX) // _COUNTED_MS_A_COST
    if first is None:
        after = replace(_with_next(stored, runs, runs.after(last)), last_nominal=last)
        return Advance(note, None, 0, after, cost)
    return _run(stored, runs, first, _due_at(stored, runs, first), now_ms, note, cost)


def _run(
    stored: StoredSchedule,
    runs: NominalTimes,
    nominal: int,
    due_at: int,
    now_ms: int,
    missed: SavedRun | None = None,
    cost: int = 1,
) -> Advance:
    after = replace(_with_next(stored, runs, runs.after(nominal)), last_nominal=nominal)
    return Advance(missed, nominal, max(0, now_ms - due_at), after, cost)


def in_order(step: Advance, result: SavedRun | None) -> tuple[SavedRun, ...]:
    """The runs to record for a step, in order. result: what became of its run, None if it had none.

    Missed runs come before the result, except while missed runs are caught up: then they come after it.
    """
    noted = tuple(run for run in (step.missed, result) if run is not None)
    catching_up = step.after.catching_up
    behind = step.nominal is not None and catching_up is not None and step.nominal <= catching_up
    return noted[::-1] if behind else noted


def is_catching_up(stored: StoredSchedule) -> bool:
    """Whether the next run of a schedule is one that it missed and now catches up.

    In the meantime the record of the runs that were dropped stays the newest one. There may be ten times as many
    caught-up runs as records that are kept, and they would push it out.
    """
    return (
        stored.catching_up is not None
        and stored.next_run is not None
        and stored.next_run <= stored.catching_up
    )


def _is_late(due_at: int, now_ms: int) -> bool:
    return due_at + limits.RUN_GRACE_MS <= now_ms


def _last_late(stored: StoredSchedule, runs: NominalTimes, nominal: int, now_ms: int) -> int:
    """The nominal time of the last run that is late by now; the next run, `nominal`, is late."""
    last = runs.latest(now_ms - limits.RUN_GRACE_MS)
    if last is not None and last > nominal and not _is_late(_due_at(stored, runs, last), now_ms):
        last = runs.latest(last - 1)
    return nominal if last is None else max(last, nominal)


def _before(runs: NominalTimes, nominal: int, at_ms: int) -> int | None:
    """The last run before an instant, from the stored `nominal` on; None for none.

    `nominal` counts as a run even if no run is at its time any more, since the rules of its zone or ours have changed.
    """
    return max(nominal, runs.latest(at_ms - 1) or 0) if at_ms > nominal else None


def sent(nominal: int, now_ms: int, late_ms: int, message: Produced) -> SavedRun:
    """The result of a run whose message was sent."""
    return SavedRun(
        nominal=nominal,
        result="sent",
        at=now_ms,
        late_ms=late_ms,
        message_id=message.id,
        sequence=message.sequence,
    )


def by_hand(now_ms: int, message: Produced) -> SavedRun:
    """The result of a run by hand."""
    return SavedRun(
        nominal=None, result="by_hand", at=now_ms, message_id=message.id, sequence=message.sequence
    )


def skipped(nominal: int, now_ms: int, late_ms: int, message_id: str, sequence: int | None) -> SavedRun:
    """The result of a run that was skipped because this message, of an earlier run, is still in the queue."""
    return SavedRun(
        nominal=nominal,
        result="skipped",
        at=now_ms,
        late_ms=late_ms,
        message_id=message_id,
        sequence=sequence,
        reason="the message of an earlier run is still in the queue",
    )


def refused(nominal: int, now_ms: int, late_ms: int, error: ForqError) -> SavedRun:
    """The result of a run whose message was refused."""
    return SavedRun(nominal=nominal, result="refused", at=now_ms, late_ms=late_ms, reason=error.message)


def totals_with(totals: ScheduleTotals, made_by: str | None, count: int) -> ScheduleTotals:
    """The totals after `count` further schedules of an access token (None: of the server's secret)."""
    made = totals.made
    if made_by is not None:
        more = Counter(made)
        more[made_by] += count
        made = +more
    return replace(totals, count=totals.count + count, made=made)


def check_share(totals: ScheduleTotals, by: str | None) -> TooManySchedules | None:
    """TooManySchedules if there may be no further one, in all or of this access token. by: None for the secret."""
    if totals.count >= limits.SCHEDULES_MAX:
        return TooManySchedules()
    if by is not None and totals.made.get(by, 0) >= limits.SCHEDULES_A_TOKEN_MAX:
        return TooManySchedules()
    return None
