"""Delayed queues over a broker, in a file and in memory, and over a client of a server; all in simulated time."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from faces.face import Face
from faces.running import open_face
from forq_trio.delayed import DelayedQueue
from support.actors import TrioClock
from support.empty_file import empty_file
from support.simulated_time import mark_simulated
from support.simulated_time import reads_without_a_deadline as _reads_without_a_deadline  # noqa: F401  autouse

from .letters import Letter

HERE = Path(__file__).parent
IN_TIER_1 = {"test_delayed_offers.py", "test_delayed_polls.py", "test_delayed_acks.py"}
"""What runs over a client in tier 1, too: each method of a queue once."""


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their tier
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_simulated(items, HERE)
    for item in items:
        if item.path.is_relative_to(HERE) and item.path.name not in IN_TIER_1:
            face = getattr(item, "callspec", None) and item.callspec.params.get("face")
            if face == "client":
                item.add_marker(pytest.mark.tier2)


@pytest.fixture(params=["broker", pytest.param("broker in memory", marks=pytest.mark.tier2), "client"])
async def face(request, tmp_path) -> AsyncIterator[Face]:
    url = "memory:" if "memory" in request.param else f"sqlite:///{empty_file(tmp_path)}"
    async with open_face("http" if request.param == "client" else "broker", url) as face:
        yield face


@pytest.fixture
async def queue(face) -> DelayedQueue[Letter]:
    return await DelayedQueue.create(face.methods, "mail", Letter, clock=TrioClock())
