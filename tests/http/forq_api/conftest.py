"""The API for the tests of this directory."""

from collections.abc import AsyncIterator

import pytest

from support.forq_api import Api, open_api


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with open_api() as api:
        yield api
