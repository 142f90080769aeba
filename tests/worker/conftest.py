"""Workers over a client of a server and, in tier 2, over a broker in memory; all in simulated time.

That both say the same is shown in tests/faces.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from faces.face import Face
from faces.running import open_face
from support.simulated_time import mark_simulated
from support.simulated_time import reads_without_a_deadline as _reads_without_a_deadline  # noqa: F401  autouse

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_simulated(items, HERE)


@pytest.fixture(params=[pytest.param("broker", marks=pytest.mark.tier2), "http"])
async def face(request) -> AsyncIterator[Face]:
    async with open_face(request.param, "memory:") as face:
        yield face
