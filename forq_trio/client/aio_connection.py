"""The connection of the asynchronous client to its server: how it makes a request, and reads the answer.

`sync_connection.py` is generated from this file by script/blocking_client.py.
"""

from types import TracebackType
from typing import Protocol, Self

from forq_trio.client import aio_waits, protocol
from forq_trio.client.aio_pool import AsyncPool
from forq_trio.client.aio_sharing import SharedAcks
from forq_trio.client.environment import FromEnvironment, advice, server_secret, server_url
from forq_trio.client.failures import ConnectFailed, TransportError
from forq_trio.client.http1 import ClientRequest, HttpAnswer
from forq_trio.client.protocol import NO_QUERY, AnswerT
from forq_trio.client.retry import Retries
from forq_trio.client.unreachable import unreachable
from forq_trio.model.command_methods import CommandMethods
from forq_trio.model.endpoint import CommandEndpoint, Endpoint
from forq_trio.model.errors import ClientClosed
from forq_trio.model.queries import Query


class AsyncTransport(Protocol):
    """Carries the requests of a client; usually a pool of connections.

    `forq_trio.client.http1` has `ClientRequest` and `HttpAnswer`, `forq_trio.client.failures` the kinds of
    `TransportError`.
    """

    async def exchange(self, request: ClientRequest) -> HttpAnswer:
        """Send a request and return its answer. Raises TransportError if no answer comes, and ClientClosed."""
        ...

    def close(self) -> None:
        """Close everything, without waiting; running requests end with ClientClosed."""
        ...


class AsyncConnection(CommandMethods):
    """A server at `url`, reached with `secret`; the methods of the client are in classes that inherit from this one."""

    def __init__(
        self,
        url: str | FromEnvironment = FromEnvironment.URL,
        secret: str | FromEnvironment = FromEnvironment.SECRET,
        *,
        retry_seconds: float = 10.0,
        transport: AsyncTransport | None = None,
    ) -> None:
        if not retry_seconds >= 0:  # nan, too
            raise ValueError(f"retry_seconds: 0 or more, not {retry_seconds!r}")
        self._url = server_url(url)
        self._advice = advice(url)
        self._secret = server_secret(secret)
        self._secret_variable = secret.value if isinstance(secret, FromEnvironment) else ""
        self._retry_seconds = retry_seconds
        self._transport: AsyncTransport = AsyncPool(self._url) if transport is None else transport
        self._acks = SharedAcks()
        self._closed = False
        self._pauses: set[aio_waits.Signal] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections; a call that waits ends at once with ClientClosed, and so does every later one."""
        self._closed = True
        for pause in tuple(self._pauses):
            pause.set()
        self._transport.close()
        await aio_waits.checkpoint_if_cancelled()

    async def _perform(self, endpoint: CommandEndpoint[AnswerT], **arguments: object) -> AnswerT:
        """Call an endpoint that is one command. arguments: the values of its path, query and body."""
        segments, query, body = protocol.parts_of(endpoint, arguments)
        return await self._call(endpoint, body, query=query, wait_seconds=0.0, **segments)

    async def _call(
        self,
        endpoint: Endpoint[AnswerT],
        body: object | None = None,
        *,
        query: Query = NO_QUERY,
        wait_seconds: float = 0.0,
        **segments: object,
    ) -> AnswerT:
        """Call an endpoint and read its answer; the arguments are those of `_exchange`."""
        answer = await self._exchange(endpoint, body, query=query, wait_seconds=wait_seconds, **segments)
        return protocol.read_answer(answer, endpoint.answers[0].body)

    async def _exchange(
        self,
        endpoint: Endpoint[object],
        body: object | None = None,
        *,
        query: Query = NO_QUERY,
        wait_seconds: float = 0.0,
        **segments: object,
    ) -> HttpAnswer:
        """Call an endpoint. Returns a success.

        segments: the values in its path, by name. query: None for a parameter that is left out. wait_seconds: how long
        the server may wait before it answers.
        """
        path = protocol.path_of(endpoint, segments, query)
        return await self._request(endpoint.method, path, body, wait_seconds)

    async def _request(
        self, method: str, path: str, body: object | None = None, wait_seconds: float = 0.0
    ) -> HttpAnswer:
        """Make a request; returns a successful answer.

        Repeats it while there is time and the earlier tries have certainly done nothing.
        """
        request = protocol.request_of(self._secret, method, path, body, wait_seconds)
        retries = Retries(self._retry_seconds)
        while True:
            if self._closed:
                raise ClientClosed
            try:
                answer = await self._transport.exchange(request)
            except TransportError as problem:
                delay = retries.next_pause() if isinstance(problem, ConnectFailed) else None
                if delay is None:
                    raise unreachable(self._url, problem, self._advice) from problem
            else:
                protocol.check_readable(answer)
                delay = retries.after_answer(answer)
                if delay is None:
                    if not answer.is_success:
                        raise protocol.refusal(
                            answer, self._url, has_secret=bool(self._secret), variable=self._secret_variable
                        )
                    return answer
            await self._pause(delay)

    async def _pause(self, seconds: float) -> None:
        """Wait, but stop when the client is closed."""
        pause = aio_waits.Signal()
        self._pauses.add(pause)
        try:
            await pause.wait(seconds)
        finally:
            self._pauses.discard(pause)
