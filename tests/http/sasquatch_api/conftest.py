"""The dialect for the tests of this directory."""

from collections.abc import AsyncIterator

import pytest

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import MEMORY_URL, open_engine

from .harness import Api, open_api


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with open_api(open_engine(MEMORY_URL, EngineSettings(), "full")) as api:
        yield api
