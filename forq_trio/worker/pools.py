"""The processes of a worker's handlers with `pool="process"`. What they need is loaded only where there are some."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from forq_trio.worker.handlers import Handler

if TYPE_CHECKING:
    from forq_trio.worker.processes import ProcessPool


class Pools:
    """The pools of a worker's handlers, each from the first time that it is asked for.

    lazy: whether a process starts only when a message needs one; else a queue's first one does so before it receives.
    """

    def __init__(self, *, lazy: bool) -> None:
        self._lazy = lazy
        self._by_queue: dict[str, ProcessPool] = {}

    def of(self, handler: Handler[Any, ..., Any]) -> "ProcessPool | None":
        """None for a handler without processes. Raises SystemUnsupported on Windows."""
        if handler.options.pool is None:
            return None
        from forq_trio.worker.processes import ProcessPool

        if handler.queue not in self._by_queue:
            self._by_queue[handler.queue] = ProcessPool(handler, lazy=self._lazy)
        return self._by_queue[handler.queue]

    def close(self) -> None:
        """End all processes."""
        for each in self._by_queue.values():
            each.close()


def refuse_in_process(handlers: Iterable[Handler[Any, ..., Any]]) -> None:
    """End this process, with a line on stderr, if it is one of a pool: it imports the program, and must not run it."""
    if any(each.options.pool is not None for each in handlers):
        from forq_trio.worker.process_main import end_if_of_a_pool

        end_if_of_a_pool()
