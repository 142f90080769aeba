"""Every test of this directory runs once per face, on SQLite, in simulated time that passes when it is told to.

In tier 1 that is the API alone: what it answers comes from a broker, as tests/actors/broker and tests/embedded use it.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.empty_file import empty_file
from support.simulated_time import mark_simulated
from support.simulated_time import reads_without_a_deadline as _reads_without_a_deadline  # noqa: F401  autouse

from .face import Face
from .running import KINDS, open_face

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_simulated(items, HERE)


@pytest.fixture
def url(tmp_path) -> str:
    """An empty database. That the memory engine does the same is shown in conformance."""
    return f"sqlite:///{empty_file(tmp_path)}"


@pytest.fixture(
    params=[each if each == "http" else pytest.param(each, marks=pytest.mark.tier2) for each in KINDS]
)
def kind(request) -> str:
    """Which face."""
    return request.param


@pytest.fixture
async def face(kind, url) -> AsyncIterator[Face]:
    async with open_face(kind, url) as face:
        yield face
