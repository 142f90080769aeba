"""The processes of a worker's handlers with `pool="process"`. What they need is loaded only where there are some."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager, closing
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from forq_trio.worker.handlers import Handler

if TYPE_CHECKING:
    from forq_trio.worker.processes import ProcessPool

Pools: TypeAlias = Mapping[str, "ProcessPool"]
"""The pools of a worker's handlers, by queue."""


@asynccontextmanager
async def open_pools(
    handlers: Iterable[Handler[Any, ..., Any]], stopping: anyio.Event
) -> AsyncIterator[Pools]:
    """The pools of these handlers while the body runs. Raises WorkerSetupError if a handler cannot be imported.

    stopping: once it is set, nothing waits for the imports of the program any more.
    """
    with_pool = [each for each in handlers if each.options.pool is not None]
    if not with_pool:
        yield {}
        return
    from forq_trio.worker.processes import ProcessPool

    pools: dict[str, ProcessPool] = {}
    with ExitStack() as stack:
        for each in with_pool:
            pools[each.queue] = stack.enter_context(closing(ProcessPool(each)))
        await _start(pools, stopping)
        yield pools


async def _start(pools: Pools, stopping: anyio.Event) -> None:
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_at, stopping, tasks.cancel_scope)
        try:
            for each in pools.values():
                await each.start()
        except Exception as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _cancel_at(stopping: anyio.Event, scope: anyio.CancelScope) -> None:
    await stopping.wait()
    scope.cancel()


def refuse_in_process(handlers: Iterable[Handler[Any, ..., Any]]) -> None:
    """End this process, with a line on stderr, if it is one of a pool: it imports the program, and must not run it."""
    if any(each.options.pool is not None for each in handlers):
        from forq_trio.worker.process_main import end_if_of_a_pool

        end_if_of_a_pool()
