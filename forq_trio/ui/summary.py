"""The totals of all queues that a viewer may see: what stands in the navigation and above the list of queues."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple

import trio
from msgspec import Struct

from forq_trio.facts import system_verdict
from forq_trio.model.messages import QueueCounts
from forq_trio.system import System
from forq_trio.ui.viewer import Viewer

_AT_ONCE = 500
_VIEWERS_MAX = 64


class Summary(Struct):
    """ready, delayed, processing, held: of queues that take no dead letters; dead: messages in those that do.

    levels: how many queues have a verdict of this level. oldest_ms, oldest_queue: for how long the oldest message could
    have been claimed, and where; None and "" if there is none. counted_at: epoch ms.
    """

    queues: int = 0
    dead_letter_queues: int = 0
    ready: int = 0
    delayed: int = 0
    processing: int = 0
    held: int = 0
    dead: int = 0
    waiting: int = 0
    levels: dict[str, int] = {}
    oldest_ms: int | None = None
    oldest_queue: str = ""
    counted_at: int = 0

    @property
    def need_attention(self) -> int:
        return self.levels.get("broken", 0) + self.levels.get("attention", 0)


class SystemVerdict(NamedTuple):
    """How the server does."""

    level: str
    sentence: str


class Summaries:
    """Counts for each kind of viewer at most once a second, letting other tasks run now and then."""

    def __init__(self, system: System, now_ms: Callable[[], int]) -> None:
        self._system = system
        self._broker = system.broker
        self._monitor = system.monitor
        self._now_ms = now_ms
        self._known: OrderedDict[str, tuple[float, Summary]] = OrderedDict()
        self._verdict = SystemVerdict("fine", "")
        self._verdict_at = float("-inf")

    async def of(self, viewer: Viewer) -> Summary:
        """The totals, at most a second old."""
        known = self._known.get(viewer.sees)
        if known is not None and trio.current_time() - known[0] < 1.0:
            return known[1]
        summary = await self._count(viewer)
        self._known[viewer.sees] = (trio.current_time(), summary)
        self._known.move_to_end(viewer.sees)
        if len(self._known) > _VIEWERS_MAX:
            self._known.popitem(last=False)
        return summary

    def system_verdict(self) -> SystemVerdict:
        """The verdict of the System page, at most a second old."""
        if trio.current_time() - self._verdict_at >= 1.0:
            level, sentence = system_verdict(self._system.facts(), self._system.jobs.reports())
            self._verdict = SystemVerdict(level, sentence)
            self._verdict_at = trio.current_time()
        return self._verdict

    async def _count(self, viewer: Viewer) -> Summary:
        summary = Summary(levels=dict.fromkeys(("broken", "attention", "paused", "fine"), 0))
        summary.counted_at = self._now_ms()
        counts = self._broker.counts()
        targets = self._broker.dead_letter_queues()
        for place, (queue, count) in enumerate(counts.items()):
            if place % _AT_ONCE == _AT_ONCE - 1:
                await trio.lowlevel.checkpoint()
            if viewer.token is None or viewer.may_see(queue):
                self._add(summary, queue, count, targets)
        return summary

    def _add(
        self, summary: Summary, queue: str, count: QueueCounts, targets: Mapping[str, object] | frozenset[str]
    ) -> None:
        summary.queues += 1
        if queue in targets:
            summary.dead_letter_queues += 1
            summary.dead += count.total
        else:
            summary.ready += count.ready
            summary.delayed += count.delayed
            summary.processing += count.processing
            summary.held += count.held
            age_ms = self._monitor.oldest_age_ms(queue) if count.ready else None
            if age_ms is not None and age_ms > (summary.oldest_ms or -1):
                summary.oldest_ms, summary.oldest_queue = age_ms, queue
        summary.waiting += self._broker.waiting(queue)
        summary.levels[self._monitor.health(queue).level] += 1
