"""Divides the event loop's time between the steps of long work and other calls.

A lease of 100,000 messages, a publication, or a large page of a relay takes many steps, each of which occupies the loop
for a moment. If a batch has other calls, the steps wait for the next batch, but never twice in a row. So a call waits
for at most one step, and long work makes progress however many calls there are. While others call, steps are short
(`Batch.shared`), and a batch has only one. With very many calls, which take longer themselves, a step has its full
length: otherwise long work would hardly make progress under constant load.
"""

from collections.abc import Sequence
from math import inf
from typing import Any

from forq_trio.model import limits
from forq_trio.model.commands import Work
from forq_trio.waiters import Call


class StepScheduler:
    """Chooses the calls of a batch. put_off: the steps of long work are deferred to the next batch."""

    def __init__(self) -> None:
        self._others_at = -inf
        self._others = 0
        self.put_off = False

    def shared(self, now: float) -> bool:
        """Whether steps of this batch are short: for some time after another call, unless there are very many calls."""
        return self._others < limits.STEP_SHARE_CALLS_MAX and self._called_lately(now)

    def _called_lately(self, now: float) -> bool:
        return now < self._others_at + limits.STEP_SHARE_SECONDS

    def take(
        self, calls: Sequence[Call[Any]], now: float, *, moving: bool
    ) -> tuple[list[Call[Any]], list[Call[Any]]]:
        """The calls of this batch, and those that wait for the next one. moving: there are staged messages to move."""
        works = [call.command.work for call in calls]
        long_work = [call for call, work in zip(calls, works, strict=True) if work is Work.LONG]
        self._others = works.count(Work.SHORT)
        if self._others:
            self._others_at = now
            self.put_off = not self.put_off and (moving or bool(long_work))
        else:
            self.put_off = False
        if not long_work or not self._called_lately(now):
            return list(calls), []
        steps = [] if self.put_off else long_work[:1]
        others = [call for call, work in zip(calls, works, strict=True) if work is not Work.LONG]
        return others + steps, long_work[len(steps) :]
