"""The totals of all queues that a viewer may see, for the navigation and the head of the list of queues."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import trio
from msgspec import Struct

from forq_trio.jobs.disk_guard import SpaceFacts
from forq_trio.jobs.facts import system_verdict
from forq_trio.model.engine_facts import SendsRefused
from forq_trio.system import System
from forq_trio.ui.directory import Directory, QueueNames
from forq_trio.ui.viewer import Viewer


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
    """The verdict on the server."""

    level: str
    sentence: str
    refusal: SendsRefused | None = None  # why sends to all queues are refused, None while they are not
    space: SpaceFacts | None = None  # its disk


class Summaries:
    """Makes the totals, once for all viewers with the same rights and each state of the known queues."""

    def __init__(self, system: System, directory: Directory, now_ms: Callable[[], int]) -> None:
        self._system = system
        self._broker = system.broker
        self._monitor = system.monitor
        self._directory = directory
        self._now_ms = now_ms
        self._verdict = SystemVerdict("fine", "")
        self._verdict_at = float("-inf")

    async def of(self, viewer: Viewer) -> Summary:
        """The totals, at most a second old."""
        known = await self._directory.known()
        return await known.answers.once(("summary", viewer.sees), lambda: self._count(known, viewer))

    def system_verdict(self) -> SystemVerdict:
        """The verdict of the System page, at most a second old."""
        if trio.current_time() - self._verdict_at >= 1.0:
            facts = self._system.facts()
            level, sentence = system_verdict(facts, self._system.reports())
            self._verdict = SystemVerdict(level, sentence, self._broker.known.sends_refused, facts.space)
            self._verdict_at = trio.current_time()
        return self._verdict

    async def _count(self, known: QueueNames, viewer: Viewer) -> Summary:
        summary = Summary(levels=dict.fromkeys(("broken", "attention", "paused", "fine"), 0))
        summary.counted_at = self._now_ms()

        def add(part: Sequence[str]) -> tuple[()]:
            for queue in part:
                self._add(summary, queue, known)
            return ()

        await self._directory.slices.over(await self._directory.seen_of(known, viewer), add)
        return summary

    def _add(self, summary: Summary, queue: str, known: QueueNames) -> None:
        count = known.counts[queue]
        summary.queues += 1
        if queue in known.targets:
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
        summary.waiting += self._broker.known.waiting(queue)
        summary.levels[self._monitor.health(queue).level] += 1
