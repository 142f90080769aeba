"""The objects that all connections of a server share, in one record."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from forq_trio.http.message import Admit, Handler, Request, Response
from forq_trio.http.transport.answer_budget import AnswerBudget
from forq_trio.http.transport.config import Refuse, TransportConfig
from forq_trio.http.transport.disconnects import DisconnectWatchers
from forq_trio.http.transport.http2.block_encoder import BlockEncoder
from forq_trio.http.transport.response_bytes import ResponseEncoder
from forq_trio.model import limits
from forq_trio.model.budget import Budget


@dataclass(frozen=True, slots=True)
class Services:
    """The objects that all connections of a server share."""

    admit: Admit
    handler: Handler
    config: TransportConfig
    ssl_context: ssl.SSLContext | None
    response_encoder: ResponseEncoder  # this and the next: of the answers over HTTP/1.1 and HTTP/2
    block_encoder: BlockEncoder
    body_budget: Budget  # the memory of requests that arrive: bodies, and heads of HTTP/2
    answer_budget: AnswerBudget
    watchers: DisconnectWatchers
    now: Callable[[], float]  # trio's clock
    on_error: Callable[[Exception], None]  # called with every unexpected exception
    refuse: Refuse  # makes every answer of the transport itself
    # held by the one connection of HTTP/2 that may parse a full portion in this pass of the loop, so that
    # many flooding connections delay others no longer than one
    http2_full_portion: trio.Lock = field(default_factory=trio.Lock)
    # held for a pass by the one connection whose handshake of TLS begins in it
    tls_handshake: trio.Lock = field(default_factory=trio.Lock)

    def linger_seconds(self, *, is_closing: bool) -> float:
        """How long to read what a client still sends after its last answer. is_closing: the server shuts down."""
        seconds = self.config.linger_seconds
        return min(seconds, limits.SHUTDOWN_IDLE_SECONDS) if is_closing else seconds

    def judge(self, request: Request) -> Response | None:
        """Call `admit`; an unexpected exception is answered like one of the handler."""
        try:
            return self.admit(request)
        except Exception as error:
            self.on_error(error)
            return self.refuse(500, request.method, request.path)
