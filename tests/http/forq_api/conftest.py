"""The API for the tests of this directory."""

from collections.abc import AsyncIterator

import pytest

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.empty_file import empty_file
from support.forq_api import Api, open_api


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with open_api() as api:
        yield api


@pytest.fixture
async def api_on_sqlite(tmp_path) -> AsyncIterator[Api]:
    """For thousands: the model looks at all messages for each."""
    async with open_api(SqliteEngine(str(empty_file(tmp_path)), EngineSettings(), "normal")) as api:
        yield api
