"""A broker on each engine, with a clock that the test sets."""

from collections.abc import AsyncIterator

import pytest

from forq_trio.model import limits
from forq_trio.system import open_broker
from support.actors import T0
from support.empty_file import empty_file


class SetClock:
    """A wall clock that stands still until it is set."""

    ms = T0

    def now_ms(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def url(tmp_path) -> str:
    return f"sqlite:///{empty_file(tmp_path)}"


@pytest.fixture
async def broker(url, clock) -> AsyncIterator[object]:
    # The default reserve of 64 MiB, allocated and freed in memory, was half of what a broker costs here.
    least = limits.DISK_RESERVE_MIB_MIN
    async with open_broker(url, durability="normal", clock=clock, disk_reserve_mb=least) as broker:
        yield broker
