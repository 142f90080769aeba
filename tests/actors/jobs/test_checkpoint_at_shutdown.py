"""A checkpoint that is under way when the system stops has ended before the engine is closed."""

import threading
from pathlib import Path

import trio
import trio.testing

from forq_trio.model import limits
from forq_trio.model.clock import SystemClock
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.write_ahead_log import CheckpointResult, LogSpace
from forq_trio.system import open_system
from oracle.engine import MemoryEngine
from support.actors import ObservedEngine, until


class SlowCheckpoints(ObservedEngine):
    """With a log of which every checkpoint waits until it is told to end; says in `order` what ended when."""

    def __init__(self, directory: Path) -> None:
        super().__init__(MemoryEngine(EngineSettings()))
        self.log = self
        self.reserve_path = str(directory / "reserve")
        self.order: list[str] = []
        self.begun, self.may_end = threading.Event(), threading.Event()

    def files_problem(self) -> None:
        pass

    def pages(self) -> int:
        return limits.CHECKPOINT_PAGES

    def space(self) -> LogSpace:
        return LogSpace(used_bytes=0, file_bytes=0, unmoved_bytes=0, free_page_bytes=0)

    def checkpoint(self, *, truncate: bool) -> CheckpointResult:
        self.begun.set()
        assert self.may_end.wait(120)
        self.order.append("checkpoint ended")
        return CheckpointResult(limits.CHECKPOINT_PAGES, limits.CHECKPOINT_PAGES)

    def close(self) -> None:
        self.order.append("closed")
        super().close()


async def test_the_engine_is_closed_after_the_checkpoint_that_runs(tmp_path) -> None:
    engine = SlowCheckpoints(tmp_path)

    async def end_the_checkpoint_once_everything_waits_for_it() -> None:
        await trio.testing.wait_all_tasks_blocked(0.05)
        engine.may_end.set()

    async with trio.open_nursery() as nursery, open_system(engine, SystemClock()) as system:
        await system.broker.produce("q", "x")
        await until(engine.begun.is_set)
        nursery.start_soon(end_the_checkpoint_once_everything_waits_for_it)
    assert engine.order == ["checkpoint ended", "closed"]
