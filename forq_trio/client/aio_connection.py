"""The connections of the asynchronous client, and how it makes a request.

`sync_connection.py` is generated from this file by script/blocking_client.py.
"""

from types import TracebackType
from typing import Self

import anyio
import httpx

from forq_trio.client import protocol
from forq_trio.client.address import DEFAULT_URL
from forq_trio.client.protocol import AnswerT
from forq_trio.client.retry import Retries
from forq_trio.client.unreachable import unreachable


class AsyncConnection:
    """A server at `url`, reached with `secret`; the methods of the client are in classes that inherit from this one."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        secret: str = "",
        *,
        retry_seconds: float = 10.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._url = url
        self._retry_seconds = retry_seconds
        self._http = httpx.AsyncClient(transport=transport, **protocol.http_settings(url, secret))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _ask(
        self,
        method: str,
        path: str,
        answer: type[AnswerT],
        body: object | None = None,
        wait_seconds: float = 0.0,
    ) -> AnswerT:
        """Make a request and read its answer. wait_seconds: how long the server may wait before it answers."""
        return protocol.read_answer(await self._request(method, path, body, wait_seconds), answer)

    async def _request(
        self, method: str, path: str, body: object | None = None, wait_seconds: float = 0.0
    ) -> httpx.Response:
        """Make a request, again while it certainly did nothing and there is time. Returns a success."""
        settings = protocol.request_settings(body, wait_seconds)
        retries = Retries(self._retry_seconds)
        while True:
            try:
                response = await self._http.request(method, path, **settings)
            except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
                delay = retries.next_pause()
                if delay is None:
                    raise unreachable(self._url, problem) from problem
            except protocol.TRANSPORT_ERRORS as problem:
                raise unreachable(self._url, problem) from problem
            except httpx.DecodingError as problem:
                raise protocol.unreadable(problem) from problem
            else:
                delay = retries.after_answer(response)
                if delay is None:
                    if not response.is_success:
                        raise protocol.refusal(response)
                    return response
            await anyio.sleep(delay)
