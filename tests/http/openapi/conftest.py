"""The API, and its OpenAPI document."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

import pytest
import trio

from support.forq_api import Api, json_of, make_request, open_api


class Described(NamedTuple):
    """An operation of the document."""

    method: str
    path: str
    operation: dict[str, Any]

    @property
    def name(self) -> str:
        return self.operation["operationId"]


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with open_api() as api:
        yield api


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """As the server answers it; it takes 0.1 s to make."""

    async def read() -> dict[str, Any]:
        async with open_api() as api:
            return json_of(await api.handler(make_request("GET", "/openapi.json", headers={})))

    return trio.run(read)


@pytest.fixture(scope="module")
def operations(document) -> list[Described]:
    return [
        Described(method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def schemas_in(value: Any) -> Iterator[dict[str, Any]]:
    """All objects in a document, at any depth."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from schemas_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from schemas_in(each)
