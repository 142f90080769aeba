"""Transports without a network: a function answers the requests of a client."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from forq_trio.client.http1 import ClientRequest, HttpAnswer

Handler = Callable[[ClientRequest], HttpAnswer]


def answer_of(status: int = 200, *, json: object = None, content: bytes = b"", **headers: str) -> HttpAnswer:
    """An answer. headers: with _ for -."""
    named = {name.replace("_", "-").lower(): value for name, value in headers.items()}
    return HttpAnswer(status, named, content if json is None else msgspec.json.encode(json))


class FakeTransport(NamedTuple):
    """Of the blocking client."""

    handler: Handler

    def exchange(self, request: ClientRequest) -> HttpAnswer:
        return self.handler(request)

    def close(self) -> None:
        pass


class AsyncFakeTransport(NamedTuple):
    """Of the asynchronous client."""

    handler: Handler

    async def exchange(self, request: ClientRequest) -> HttpAnswer:
        return self.handler(request)

    def close(self) -> None:
        pass
