"""The dialect for the tests of this directory, over each engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import MEMORY_URL, open_engine

from .harness import Api, open_api


@pytest.fixture(params=["memory", "sqlite"])
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Api]:
    """With the behaviour of the queue behind it: on both engines."""
    url = MEMORY_URL if request.param == "memory" else f"sqlite:///{tmp_path}/forq.db"
    async with open_api(open_engine(url, EngineSettings(), "normal")) as api:
        yield api


@pytest.fixture
async def memory_api() -> AsyncIterator[Api]:
    """For what the dialect decides alone."""
    async with open_api(open_engine(MEMORY_URL, EngineSettings(), "full")) as api:
        yield api
