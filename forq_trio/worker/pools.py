"""The processes of a worker's handlers with `pool="process"`. What they need is loaded only where there are some."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager, closing
from typing import TYPE_CHECKING, Any, TypeAlias

from forq_trio.worker.handlers import Handler

if TYPE_CHECKING:
    from forq_trio.worker.processes import ProcessPool

Pools: TypeAlias = Mapping[str, "ProcessPool"]
"""The pools of a worker's handlers, by queue."""


@asynccontextmanager
async def open_pools(handlers: Iterable[Handler[Any, ..., Any]]) -> AsyncIterator[Pools]:
    """The pools of these handlers while the body runs. Raises WorkerSetupError if a handler cannot be imported."""
    with_pool = [each for each in handlers if each.options.pool is not None]
    if not with_pool:
        yield {}
        return
    from forq_trio.worker.processes import ProcessPool

    pools: dict[str, ProcessPool] = {}
    with ExitStack() as stack:
        for each in with_pool:
            pools[each.queue] = stack.enter_context(closing(ProcessPool(each)))
            await pools[each.queue].start()
        yield pools


def refuse_in_process(handlers: Iterable[Handler[Any, ..., Any]]) -> None:
    """End this process, with a line on stderr, if it is one of a pool: it imports the program, and must not run it."""
    if any(each.options.pool is not None for each in handlers):
        from forq_trio.worker.process_main import end_if_of_a_pool

        end_if_of_a_pool()
