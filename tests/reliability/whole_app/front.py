"""The server as its clients reach it, without sockets: requests go to the handler, and connections break.

An exchange does what `http/transport/http1_connection.py` and `http/transport/http2/connection.py` do around a
handler: it runs in place where it may, else in a task. A client may

- stay;
- hang up: noticed while its request waits (`Request.cancelled_on_disconnect`), or else when the answer is written;
- reset: its handler is cancelled wherever it is, as it is by HTTP/2, and when the server has to stop;
- be gone when the answer is written: `Response.on_unsent` is called.
"""

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
import trio

from forq_trio.http.message import Admit, Handler, Request, Response
from forq_trio.http.transport.running_handler import RunningHandler
from reliability.whole_app.books import Books
from reliability.whole_app.violations import Clause, Violation
from support.actors import elapse

SECRET = "s" * 32
SETTLE_SECONDS = 0.01
CALL_SECONDS_MAX = 8.0
"""How long a call may take beside the time it asked to wait: room for slow commits, and for reads that time out."""

LEAVING_SECONDS = (0.0, 0.0001, 0.0005, 0.001, 0.01, 0.02, 0.3, 7)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Answer(NamedTuple):
    """status: 0 when the server took no more requests. body: decoded, None for none."""

    status: int
    body: Any = None

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def nothing_happened(self) -> bool:
        """Whether it says that nothing was done. A 500 says that nobody knows."""
        return self.status == 0 or (self.status != 500 and not self.ok)


NOT_TAKEN = Answer(0)


class _Exchange(AbstractAsyncContextManager[None]):
    """One request on its way, and the watch on its client. leaves_at: when the client hangs up (trio's clock)."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.leaves_at = float("inf")

    async def __aenter__(self) -> None:
        if self.leaves_at != float("inf"):
            self.scope.deadline = max(self.leaves_at, trio.current_time() + SETTLE_SECONDS)

    async def __aexit__(self, *_: object) -> None:
        self.scope.deadline = float("inf")


class Front:
    """books: where what nobody foresaw is noted. restlessness: how often a client does not stay (0 to 1)."""

    def __init__(self, admit: Admit, handler: Handler, rng: random.Random, books: Books) -> None:
        self._admit = admit
        self._handler = handler
        self._rng = rng
        self._books = books
        self._exchanges: dict[_Exchange, None] = {}
        self._open = True
        self.restlessness = 0.0

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: str = "",
        receipt: str = "",
        wait_ms: int = 0,
    ) -> Answer | None:
        """The answer; None for a client that did not get it. wait_ms: how long the request may wait by itself."""
        headers = {b"x-api-key": SECRET.encode()}
        if receipt:
            headers[b"x-forq-receipt"] = receipt.encode()
        return await self._exchange(method, f"/api/v1/queues{path}", query, headers, body, wait_ms)

    async def ask_about_batch(self, method: str, path: str, body: object = None) -> Answer | None:
        """The answer to a request about a message batch; None for a client that did not get it."""
        headers = {b"x-api-key": SECRET.encode()}
        return await self._exchange(method, f"/api/v1/batches/{path}", "", headers, body, 0)

    async def ask_sqs(self, operation: str, body: object) -> Answer | None:
        """The answer of an operation of SQS; None for a client that did not get it."""
        headers = {b"x-amz-target": f"AmazonSQS.{operation}".encode()}
        return await self._exchange("POST", "/", "", headers, body, 0)

    async def _exchange(
        self, method: str, path: str, query: str, headers: dict[bytes, bytes], body: object, wait_ms: int
    ) -> Answer | None:
        if not self._open:
            await trio.lowlevel.checkpoint()
            return NOT_TAKEN
        exchange = _Exchange()
        raw = b"" if body is None else _encode(body)
        request = Request(method, path, query, headers, raw, "127.0.0.1", lambda: exchange)
        unsent = self._choose_how_to_leave(exchange)
        self._exchanges[exchange] = None
        try:
            with trio.move_on_after(wait_ms / 1_000 + CALL_SECONDS_MAX) as bound, exchange.scope:
                response = await self._handle(request)
                return self._write(response, exchange, unsent=unsent)
        finally:
            del self._exchanges[exchange]
            self._books.seen["calls"] += 1
        self._books.seen["cut"] += 1
        if bound.cancelled_caught:
            self._books.violations.append(
                Violation(Clause.HUNG, f"{method} {path} {query} {raw!r} was not answered")
            )
        return None

    def _choose_how_to_leave(self, exchange: _Exchange) -> bool:
        """Whether the client will be gone when its answer is written."""
        if self._rng.random() >= self.restlessness:
            return False
        leaves_at = trio.current_time() + self._rng.choice(LEAVING_SECONDS)
        match self._rng.randrange(3):
            case 0:
                exchange.leaves_at = leaves_at
            case 1:
                exchange.scope.deadline = leaves_at
            case _:
                return True
        return False

    async def _handle(self, request: Request) -> Response:
        refused = self._admit(request)
        if refused is not None:
            return refused
        wake = trio.Event()
        tasks: list[Callable[[], Awaitable[None]]] = []
        responses: list[Response | None] = []

        def start_task(run: Callable[[], Awaitable[None]]) -> None:
            tasks.append(run)
            wake.set()

        def ended(response: Response | None) -> None:
            responses.append(response)
            wake.set()

        def note(error: Exception) -> None:
            what = f"{request.method} {request.path} {request.body!r}: {error!r}"
            self._books.violations.append(Violation(Clause.CRASHED, what))

        services: Any = SimpleNamespace(
            handler=self._handler,
            start_task=start_task,
            on_error=note,
            refuse=lambda status, *_: Response(status),
            undo=lambda on_unsent: on_unsent(),
        )
        work = RunningHandler(services, request, ended)
        at_once = work.start()
        if at_once is not None:
            return at_once
        try:
            await wake.wait()
            if tasks:
                await tasks.pop()()
        except BaseException:
            if not responses:
                work.cancel()
            elif responses[0] is not None and responses[0].on_unsent is not None:
                responses[0].on_unsent()
            raise
        self._books.seen["in place" if request.in_place else "in a task"] += 1
        assert responses[0] is not None
        return responses[0]

    def _write(self, response: Response, exchange: _Exchange, *, unsent: bool) -> Answer | None:
        if unsent or trio.current_time() >= exchange.leaves_at:
            if response.on_unsent is not None:
                self._books.seen["unsent"] += 1
                response.on_unsent()
            return None
        return Answer(response.status, _decode(response.body) if response.body else None)

    def cut_one(self) -> None:
        """Some connection breaks now."""
        if self._exchanges:
            self._rng.choice(list(self._exchanges)).scope.cancel()

    async def close(self, drain: Callable[[], None], seconds: float) -> None:
        """Stop as the server does: take nothing more, let receivers go, then cut who is not done in time."""
        self._open = False
        drain()
        deadline = trio.current_time() + seconds
        while self._exchanges and trio.current_time() < deadline:
            await elapse(min(0.5, deadline - trio.current_time()))
        for exchange in self._exchanges:
            exchange.scope.cancel()
