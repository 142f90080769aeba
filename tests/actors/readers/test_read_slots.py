"""Who reads next: round-robin by caller, slots that long reads never hold, a bound on what a caller has waiting."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model import limits
from forq_trio.model.errors import Overloaded
from forq_trio.readers.slots import ReadSlots


class Reads:
    """Reads that hold their slots until they are told to end. began: who holds or has held one, in order."""

    def __init__(self, slots: ReadSlots, nursery: trio.Nursery) -> None:
        self._slots = slots
        self._nursery = nursery
        self._ends: dict[str, trio.Event] = {}
        self._scopes: dict[str, trio.CancelScope] = {}
        self.began: list[str] = []
        self.refused: list[str] = []

    def start_soon(self, name: str, caller: str, *, long: bool = False) -> None:
        self._ends[name] = trio.Event()
        self._scopes[name] = trio.CancelScope()
        self._nursery.start_soon(self._run, name, caller, long)

    async def start(self, name: str, caller: str, *, long: bool = False) -> None:
        self.start_soon(name, caller, long=long)
        await wait_all_tasks_blocked()

    async def _run(self, name: str, caller: str, long: bool) -> None:
        with self._scopes[name]:
            try:
                async with self._slots.hold(caller, long=long):
                    self.began.append(name)
                    await self._ends[name].wait()
            except Overloaded:
                self.refused.append(name)

    async def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
            await wait_all_tasks_blocked()

    def cancel(self, name: str) -> None:
        self._scopes[name].cancel()


@asynccontextmanager
async def reads_of(slots: ReadSlots) -> AsyncIterator[Reads]:
    async with trio.open_nursery() as nursery:
        yield Reads(slots, nursery)
        nursery.cancel_scope.cancel()


async def test_callers_are_served_round_robin() -> None:
    async with reads_of(ReadSlots(1)) as reads:
        for name in ("a0", "a1", "a2", "a3"):
            await reads.start(name, "a")
        await reads.start("b1", "b")
        await reads.start("c1", "c")
        await reads.end("a0", "a1", "b1", "c1", "a2", "a3")
        assert reads.began == ["a0", "a1", "b1", "c1", "a2", "a3"]


@pytest.mark.parametrize("size", [2, 3, 5, 9])
async def test_long_reads_leave_slots_to_short_ones(size) -> None:
    async with reads_of(ReadSlots(size)) as reads:
        for number in range(size + 3):
            await reads.start(f"long {number}", str(number), long=True)
        assert len(reads.began) == size // 2
        for number in range(size - size // 2):
            await reads.start(f"short {number}", "a")
            assert reads.began[-1] == f"short {number}"


async def test_short_reads_may_hold_all_slots_and_go_first() -> None:
    async with reads_of(ReadSlots(2)) as reads:
        await reads.start("short 1", "a")
        await reads.start("short 2", "a")
        await reads.start("long 1", "b", long=True)
        await reads.start("short 3", "a")
        await reads.end("short 1", "short 2")
        assert reads.began == ["short 1", "short 2", "short 3", "long 1"]


async def test_the_only_slot_serves_long_reads_too() -> None:
    async with reads_of(ReadSlots(1)) as reads:
        await reads.start("long", "a", long=True)
        assert reads.began == ["long"]


@pytest.mark.parametrize(
    ("long", "bound"), [(False, limits.READS_WAITING_MAX), (True, limits.LONG_READS_WAITING_MAX)]
)
async def test_what_a_caller_has_waiting_is_bounded_and_others_are_not_refused(long, bound) -> None:
    slots = ReadSlots(1)
    async with reads_of(slots) as reads:
        await reads.start("running", "other")
        for number in range(bound):
            reads.start_soon(f"a{number}", "a", long=long)
        await wait_all_tasks_blocked()
        assert (slots.waiting, reads.refused) == (bound, [])
        await reads.start("one more", "a", long=long)
        await reads.start("b", "b", long=long)
        assert (slots.waiting, reads.refused) == (bound + 1, ["one more"])


async def test_who_leaves_while_waiting_holds_up_nobody() -> None:
    slots = ReadSlots(1)
    async with reads_of(slots) as reads:
        for name in ("a0", "a1", "a2"):
            await reads.start(name, "a")
        reads.cancel("a1")
        await wait_all_tasks_blocked()
        assert slots.waiting == 1
        await reads.end("a0")
        assert reads.began == ["a0", "a2"]


async def test_who_leaves_as_the_slot_is_granted_gives_it_back() -> None:
    slots = ReadSlots(1)
    async with reads_of(slots) as reads:
        async with slots.hold("a", long=False):
            await reads.start("a1", "a")
            await reads.start("a2", "a")
            reads.cancel("a1")
        await wait_all_tasks_blocked()
        assert reads.began == ["a2"]
