"""The UI's share of the loop: what is paid, who waits and for how long, in which order."""

from collections.abc import AsyncIterator, Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model import limits
from forq_trio.model.errors import Overloaded
from forq_trio.ui import loop_share
from forq_trio.ui.loop_share import ACCOUNT, Account, LoopShare, Permit, metered
from support.actors import elapse

SHARE = 0.05
BURST = 0.1


class Worked:
    """How long the loop has worked; moved by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
async def nursery(autojump_clock) -> AsyncIterator[trio.Nursery]:
    async with trio.open_nursery() as nursery:
        yield nursery
        nursery.cancel_scope.cancel()


@pytest.fixture
def make(nursery) -> Callable[..., LoopShare]:
    def make_share(running_max: int = 1, **more) -> LoopShare:
        share = LoopShare(SHARE, BURST, running_max, **more)
        nursery.start_soon(share.run)
        return share

    return make_share


class Requests:
    """Requests that wait for a permit; `began` is who got one, in order."""

    def __init__(self, share: LoopShare, nursery: trio.Nursery) -> None:
        self._share = share
        self._nursery = nursery
        self.began: list[str] = []
        self.refused: list[str] = []
        self.permits: dict[str, Permit] = {}

    async def start(self, *names: str) -> None:
        """Requests of the caller who is named by the first letter."""
        for name in names:
            self._nursery.start_soon(self._run, name)
            await wait_all_tasks_blocked()

    async def _run(self, name: str) -> None:
        try:
            self.permits[name] = await self._share.permit(name[0])
        except Overloaded:
            self.refused.append(name)
        else:
            self.began.append(name)

    async def end(self, *names: str) -> None:
        for name in names:
            self.permits[name].end()
            await wait_all_tasks_blocked()


async def test_what_is_owed_is_waited_for(autojump_clock, make):
    share = make()
    (await share.permit("a")).end()
    share.spend(BURST + 0.01)
    started = trio.current_time()
    await share.permit("a")
    assert trio.current_time() - started == pytest.approx(0.01 / SHARE, abs=0.06)


async def test_no_more_is_used_than_the_share_and_the_burst(autojump_clock, make, nursery):
    """However many ask for however long: each request here takes 1.5 ms of the loop."""
    share = make()

    async def ask_again_and_again(caller: str) -> None:
        while True:
            permit = await share.permit(caller)
            share.spend(0.0015)
            permit.end()
            await trio.lowlevel.checkpoint()

    for number in range(64):
        nursery.start_soon(ask_again_and_again, str(number % 8))
    await elapse(60)
    assert 60 * SHARE * 0.9 <= share.spent <= 60 * SHARE + BURST + 0.0015


async def test_an_idle_loop_gives_more_and_a_busy_one_no_less(autojump_clock, make):
    worked = Worked()
    share = make(idle_share=1.0, loop_seconds=worked)
    share.balance()
    share.spend(BURST)
    await elapse(0.01)
    assert share.balance() == pytest.approx(0.01 * (SHARE + 1.0))
    share.spend(share.balance())
    worked.seconds += 0.5
    await elapse(0.5)
    assert share.balance() == pytest.approx(0.5 * SHARE)


async def test_callers_have_their_permits_round_robin_and_one_runs_at_a_time(autojump_clock, make, nursery):
    requests = Requests(make(), nursery)
    await requests.start("a0", "a1", "a2", "a3", "b1", "c1")
    await requests.end("a0", "a1", "b1", "c1", "a2")
    assert requests.began == ["a0", "a1", "b1", "c1", "a2", "a3"]


async def test_as_many_run_as_may(autojump_clock, make, nursery):
    requests = Requests(make(running_max=3), nursery)
    await requests.start("a0", "b0", "c0", "d0")
    assert requests.began == ["a0", "b0", "c0"]
    await requests.end("b0", "b0")
    assert requests.began == ["a0", "b0", "c0", "d0"]
    await requests.start("e0")
    assert "e0" not in requests.began


async def test_a_caller_with_too_many_waiting_is_refused_and_others_wait(autojump_clock, make, nursery):
    requests = Requests(make(), nursery)
    await requests.start("b0", *(f"a{number}" for number in range(limits.UI_WAITING_MAX + 1)), "b1")
    assert requests.refused == [f"a{limits.UI_WAITING_MAX}"]
    assert requests.began == ["b0"]


async def test_who_waits_too_long_is_refused(autojump_clock, make, nursery):
    requests = Requests(make(), nursery)
    await requests.start("a0", "a1")
    await elapse(limits.UI_WAIT_SECONDS_MAX - 0.1)
    assert requests.refused == []
    await elapse(0.2)
    assert requests.refused == ["a1"]
    await requests.end("a0")
    await requests.start("a2")
    assert requests.began == ["a0", "a2"]


async def test_who_leaves_holds_up_nobody(autojump_clock, make, nursery):
    share = make()
    requests = Requests(share, nursery)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as leaving:
            await requests.start("a0")
            leaving.start_soon(share.permit, "a")
            await wait_all_tasks_blocked()
            await requests.start("a2")
            scope.cancel()
            await requests.end("a0")
    await wait_all_tasks_blocked()
    assert requests.began == ["a0", "a2"]


async def test_who_leaves_as_its_permit_comes_hands_it_on(autojump_clock, make, nursery):
    share = make()
    requests = Requests(share, nursery)
    await requests.start("a0")
    async with trio.open_nursery() as leaving:
        leaving.start_soon(share.permit, "a")
        await wait_all_tasks_blocked()
        await requests.start("a2")
        leaving.cancel_scope.cancel()
        requests.permits["a0"].end()
    await wait_all_tasks_blocked()
    assert requests.began == ["a0", "a2"]


async def test_what_comes_before_requests_goes_on_until_more_than_the_burst_is_owed(autojump_clock, make):
    share = make()
    started = trio.current_time()
    share.spend(2 * BURST)
    await share.paid()
    assert trio.current_time() == started
    share.spend(0.01)
    await share.paid()
    assert trio.current_time() - started == pytest.approx(0.01 / SHARE, abs=0.001)


@pytest.fixture
def worked(monkeypatch) -> Worked:
    worked = Worked()
    monkeypatch.setattr(loop_share, "thread_time", worked)
    return worked


async def test_work_on_the_loop_is_paid_and_waiting_is_not(autojump_clock, worked):
    share = LoopShare(SHARE, BURST, 1)
    ACCOUNT.set(Account(share))
    begun = trio.Event()

    async def work() -> str:
        worked.seconds += 0.25
        begun.set()
        await elapse(1)
        worked.seconds += 0.5
        return "done"

    async def others() -> None:
        await begun.wait()
        worked.seconds += 10

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        assert await metered(work()) == "done"
    assert share.spent == 0.75


async def test_work_that_fails_or_is_cancelled_is_paid_too(autojump_clock, worked):
    share = LoopShare(SHARE, BURST, 1)
    ACCOUNT.set(Account(share))
    noticed = []

    async def fail() -> None:
        worked.seconds += 0.25
        await trio.lowlevel.checkpoint()
        raise ValueError("wrong")

    async def wait() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            worked.seconds += 0.5
            noticed.append("cancelled")
            raise

    with pytest.raises(ValueError, match="wrong"):
        await metered(fail())
    with trio.move_on_after(1) as scope:
        await metered(wait())
    assert scope.cancelled_caught
    assert noticed == ["cancelled"]
    assert share.spent == 0.75


async def test_nothing_is_paid_where_there_is_no_account_or_it_is_closed(autojump_clock, worked):
    async def work() -> None:
        worked.seconds += 0.25
        await trio.lowlevel.checkpoint()

    await metered(work())
    share = LoopShare(SHARE, BURST, 1)
    account = Account(share)
    account.share = None
    ACCOUNT.set(account)
    await metered(work())
    assert share.spent == 0.0
