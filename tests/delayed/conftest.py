"""Delayed queues over a broker, in a file and in memory, and over a client of a server; all in simulated time."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from faces.face import Face
from faces.running import open_face
from forq_trio.delayed import DelayedQueue
from support.actors import TrioClock
from support.simulated_time import mark_simulated
from support.simulated_time import reads_without_a_deadline as _reads_without_a_deadline  # noqa: F401  autouse

from .letters import Letter

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_simulated(items, HERE)


@pytest.fixture(params=["broker", "broker in memory", "client"])
async def face(request, tmp_path) -> AsyncIterator[Face]:
    url = "memory:" if "memory" in request.param else f"sqlite:///{tmp_path / 'forq.db'}"
    async with open_face("http" if request.param == "client" else "broker", url) as face:
        yield face


@pytest.fixture
async def queue(face) -> DelayedQueue[Letter]:
    return await DelayedQueue.create(face.methods, "mail", Letter, clock=TrioClock())
