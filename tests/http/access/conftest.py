"""The API for the tests of this directory, and short words for tokens."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from forq_trio.http.message import JSON
from forq_trio.model.access.types import Scope
from support.forq_api import Api, blamed, json_of, make_request, open_api


class Holder:
    """Somebody who shows a key."""

    def __init__(self, api: Api, key: str, client: str = "192.0.2.1") -> None:
        self.api = api
        self.key = key
        self.client = client

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, dict]:
        """Status and JSON (or {}) of the answer; paths below the queues' prefix unless they are absolute."""
        if not path.startswith("/"):
            path = f"/api/v1/queues/{path}"
        headers = {b"x-api-key": self.key.encode(), b"x-forq-answer": b"full"}
        response = await self.api.handler(make_request(method, path, body, headers, self.client))
        return response.status, json_of(response) if response.content_type == JSON and response.body else {}


def missing(answer: dict) -> str:
    """The scope that is missing, as an answer 403 says."""
    found = re.search("the scope ([a-z]+)", blamed(answer) and answer["message"])
    assert found is not None, answer
    return found[1]


async def is_forbidden(holder: Holder, scope: str, *request: Any) -> None:
    """The request is refused because the holder's token lacks the scope."""
    status, answer = await holder.ask(*request)
    assert (status, answer["code"], missing(answer)) == (403, "forbidden", scope)


class Tokens:
    """Makes tokens and their holders."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._made = 0

    async def holder(self, *scopes: Scope, queues: str = "*", expires_at: int | None = None) -> Holder:
        """The holder of a new token, which is named t1, t2, ..."""
        self._made += 1
        text = (
            await self.api.broker.create_token(f"t{self._made}", scopes, queues, expires_at=expires_at)
        ).token
        return Holder(self.api, text)


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with open_api() as api:
        yield api


@pytest.fixture
def tokens(api: Api) -> Tokens:
    return Tokens(api)
