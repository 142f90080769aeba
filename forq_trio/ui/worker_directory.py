"""The workers that a viewer may see: found at most once a second for all requests, and in slices."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from forq_trio.broker.broker import Broker
from forq_trio.model.workers.types import WorkerInfo
from forq_trio.ui.directory import FEW, SECONDS, Answers
from forq_trio.ui.slices import Slices
from forq_trio.ui.viewer import Viewer
from forq_trio.ui.worker_views import QueueLine, Verdict, WorkerRow, WorkerTotals, row_of, verdict


class SeenWorkers(Struct):
    """The workers that a viewer may see, at one moment (`at`, epoch ms)."""

    at: int
    rows: Mapping[str, WorkerRow]  # in no order, by id
    lines: Mapping[str, QueueLine]  # by queue
    totals: WorkerTotals
    verdict: Verdict


class WorkerDirectory:
    """Finds the workers for pages. slices: lets other tasks run during long work."""

    def __init__(self, broker: Broker, slices: Slices, now_ms: Callable[[], int]) -> None:
        self._broker = broker
        self._slices = slices
        self._now_ms = now_ms
        self._answers = Answers(SECONDS)

    async def seen(self, viewer: Viewer) -> SeenWorkers:
        """The workers that the viewer may see; at most a second old, and with few workers always current."""
        if self._broker.known_workers.count <= FEW:
            return await self._find(viewer)
        return await self._answers.once(viewer.sees, lambda: self._find(viewer))

    async def _find(self, viewer: Viewer) -> SeenWorkers:
        now_ms = self._now_ms()
        rows: dict[str, WorkerRow] = {}
        lines: dict[str, QueueLine] = {}
        totals = WorkerTotals()

        def note(part: Sequence[WorkerInfo]) -> tuple[()]:
            for each in part:
                info = within(each, viewer)
                if info is None:
                    continue
                row = row_of(info, now_ms)
                rows[row.id] = row
                totals.add(row)
                for queue in info.report.queues:
                    lines.setdefault(queue.queue, QueueLine(queue.queue)).add(row, queue, info)
            return ()

        await self._slices.over(self._broker.known_workers.all(), note)
        return SeenWorkers(now_ms, rows, lines, totals, verdict(totals, lines.values(), now_ms))


def within(info: WorkerInfo, viewer: Viewer) -> WorkerInfo | None:
    """The part of a worker that the viewer may see; None if there is none."""
    return info if viewer.token is None else info.within(viewer.may_see)
