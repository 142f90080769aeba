"""Reports of workers and server processes. A part of `Broker`; what is known about them is only in memory."""

from collections.abc import Collection, Iterable, Sequence

import trio

from forq_trio.broker.base import BrokerBase
from forq_trio.model import limits
from forq_trio.model.access.types import SECRET, Key
from forq_trio.model.checks import check_is_list, check_range
from forq_trio.model.errors import Forbidden, Stopping
from forq_trio.model.messages.types import check_queue_name
from forq_trio.model.server.processes import ProcessInfo
from forq_trio.model.workers.methods import WorkerMethods
from forq_trio.model.workers.types import WorkerInfo, WorkerReport
from forq_trio.model.workers.withdrawn import WithdrawnMessages


class WorkerCalls(WorkerMethods, BrokerBase):
    """Nothing here is stored: after a restart the server learns of a worker with its next report."""

    async def report_worker(self, report: WorkerReport, *, key: Key = SECRET) -> None:
        await trio.lowlevel.checkpoint()
        _check_covers(key, [part.queue for part in report.queues])
        self.known_workers.report(report, key=key)

    async def forget_worker(self, worker_id: str, *, key: Key = SECRET) -> None:
        await trio.lowlevel.checkpoint()
        self.known_workers.forget(worker_id, key=key)

    async def withdrawn(
        self, queues: Sequence[str], after: int, *, wait_ms: int = limits.WAIT_MS_MAX, key: Key = SECRET
    ) -> WithdrawnMessages:
        await trio.lowlevel.checkpoint()
        check_is_list("queues", queues)
        check_range("number of queues", len(queues), 1, limits.WORKER_QUEUES_MAX, "queues")
        names = {check_queue_name(queue) for queue in queues}
        _check_covers(key, queues)
        check_range("after", after, 0, limits.WORKER_TIME_MS_MAX)
        check_range("wait_ms", wait_ms, 0, limits.WAIT_MS_MAX)
        found = self._withdrawn_since(after, names)
        if found.messages or not wait_ms:
            return found
        watches = self._writer.announced.withdrawn
        with (
            self.known_workers.polls.one_used(),
            trio.move_on_after(wait_ms / 1_000),
            watches.on_any(names) as watcher,
        ):
            while not (found.messages or watches.closed):
                await watcher.wait()
                watcher.mark()
                found = self._withdrawn_since(found.position, names)
        if found.messages:
            return found
        if watches.closed:
            raise Stopping
        return self._withdrawn_since(found.position, names)  # with a later position

    def _withdrawn_since(self, after: int, queues: Collection[str]) -> WithdrawnMessages:
        return self._writer.snapshot().withdrawn.answer(queues, after, self.known_workers.began_at)

    async def workers(self, queue: str | None = None, *, key: Key = SECRET) -> list[WorkerInfo]:
        await trio.lowlevel.checkpoint()
        known = self.known_workers
        if queue is not None and not key.covers(check_queue_name(queue)):
            return []
        found = known.all() if queue is None else known.of(queue)
        seen = (info.within(key.covers) for info in found)
        return [info for info in seen if info is not None]

    async def processes(self) -> list[ProcessInfo]:
        await trio.lowlevel.checkpoint()
        return self.known_processes.all()


def _check_covers(key: Key, queues: Iterable[str]) -> None:
    """Raise Forbidden unless the key covers these queues."""
    for queue in queues:
        if not key.covers(queue):
            raise Forbidden(f"the token has not the scope consume for the queue {queue}")
