"""The objects that all connections of a server share, in one record."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from forq_trio.http.message import Admit, Handler, Request, Response
from forq_trio.http.transport.answer_budget import AnswerBudget
from forq_trio.http.transport.config import Refuse, TransportConfig
from forq_trio.http.transport.http2.block_encoder import BlockEncoder
from forq_trio.http.transport.poller import Poller
from forq_trio.http.transport.response_bytes import ResponseEncoder
from forq_trio.model import limits
from forq_trio.model.budget import Budget


@dataclass(frozen=True, slots=True)
class Services:
    """The objects that all connections of a server share."""

    admit: Admit
    handler: Handler
    config: TransportConfig
    response_encoder: ResponseEncoder  # this and the next: of the answers over HTTP/1.1 and HTTP/2
    block_encoder: BlockEncoder
    body_budget: Budget  # the memory of requests that arrive: bodies, and heads of HTTP/2
    answer_budget: AnswerBudget
    poller: Poller
    start_task: Callable[
        [Callable[[], Awaitable[None]]], None
    ]  # in a nursery that lasts as long as the server
    now: Callable[[], float]  # trio's clock
    on_error: Callable[[Exception], None]  # called with every unexpected exception
    refuse: Refuse  # makes every answer of the transport itself

    def linger_seconds(self, *, is_closing: bool) -> float:
        """How long to read what a client still sends after its last answer. is_closing: the server shuts down."""
        seconds = self.config.linger_seconds
        return min(seconds, limits.SHUTDOWN_IDLE_SECONDS) if is_closing else seconds

    def undo(self, on_unsent: Callable[[], None]) -> None:
        """Undo a request whose answer the client did not get. An unexpected exception is reported."""
        try:
            on_unsent()
        except Exception as error:
            self.on_error(error)

    def judge(self, request: Request) -> Response | None:
        """Call `admit`; an unexpected exception is answered like one of the handler."""
        try:
            return self.admit(request)
        except Exception as error:
            self.on_error(error)
            return self.refuse(500, request.method, request.path, request.headers)
